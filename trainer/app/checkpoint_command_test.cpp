#include "trainer/app/checkpoint_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/files_fake.h"
#include "trainer/checkpoint/checkpoint_fixture.h"

namespace evenkeel::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const char kRoot[] = "/checkpoints/job";
const char kWeights[] = "/weights.safetensors";

struct Printed {
  int code = -1;
  std::string out, err;
};

template <class Command>
Printed printed(Command command) {
  std::ostringstream out, err;
  Printed result;
  result.code = command(out, err);
  result.out = out.str();
  result.err = err.str();
  return result;
}

std::string folder_of(std::int64_t step) {
  return std::string(kRoot) + "/" + contract::checkpoint_directory_name(step);
}

void flip_last_byte(base::FakeFiles& files, const std::string& path) {
  std::string content = *files.read(path, 1 << 20);
  content.back() ^= 1;
  files.put(path, content);
}

struct Three : public testing::Test {
  Three() {
    for (const std::int64_t step : {10, 20, 30}) EXPECT_TRUE(save_numbered(files, kRoot, step, 3).ok());
  }
  Printed ls(const std::string& root = kRoot) {
    return printed([&](auto& out, auto& err) { return run_checkpoint_ls(files, root, out, err); });
  }
  Printed verify(const std::string& folder) {
    return printed([&](auto& out, auto& err) { return run_checkpoint_verify(files, folder, out, err); });
  }
  Printed export_to(const std::string& folder, const std::string& output,
                    ExportContent content = ExportContent::kWeights) {
    return printed([&](auto& out, auto& err) {
      return run_checkpoint_export(files, folder, output, content, out, err);
    });
  }
  base::FakeFiles files;
};
using CheckpointLs = Three;
using CheckpointVerify = Three;
using CheckpointExport = Three;

TEST_F(CheckpointLs, lists_newest_first_with_what_is_wrong) {
  flip_last_byte(files, folder_of(20) + kWeights);
  files.put(std::string(kRoot) + "/step-000000040.tmp/weights.safetensors", "half");
  files.put(folder_of(25) + kWeights, "no manifest");
  files.put(std::string(kRoot) + "/notes.txt", "hello");
  const Printed result = ls(std::string(kRoot) + "/");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  std::vector<std::string> lines;
  std::istringstream text(result.out);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 6u) << result.out;
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("STEP"), HasSubstr("EPOCH"), HasSubstr("SAMPLES"), HasSubstr("SIZE")));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("40"), HasSubstr("never finished")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr("30"), HasSubstr("120"), HasSubstr("ok")));
  EXPECT_THAT(lines[3], AllOf(HasSubstr("25"), HasSubstr("manifest.json"), HasSubstr("No such file")));
  EXPECT_THAT(lines[4], AllOf(HasSubstr("20"), HasSubstr("80"), HasSubstr("weights.safetensors: the CRC")));
  EXPECT_THAT(lines[5], AllOf(HasSubstr("10"), HasSubstr("40"), HasSubstr("ok")));
}

TEST_F(CheckpointLs, an_empty_folder_is_no_error_and_a_missing_one_is_named) {
  files.put("/empty/readme", "x");
  const Printed empty = ls("/empty");
  EXPECT_EQ(empty.code, 0);
  EXPECT_EQ(empty.out, "no checkpoints in /empty\n");
  const Printed missing = ls("/none");
  EXPECT_EQ(missing.code, 65);
  EXPECT_THAT(missing.err, HasSubstr("/none"));
}

TEST_F(CheckpointLs, a_disk_that_cannot_be_read_is_exit_74) {
  files.fail_call(1, {base::ErrorCode::kIo, "Input/output error"});
  EXPECT_EQ(ls().code, 74);
}

TEST_F(CheckpointVerify, names_every_file) {
  const Printed good = verify(folder_of(30));
  EXPECT_EQ(good.code, 0);
  EXPECT_THAT(good.out,
              AllOf(HasSubstr("ok    manifest.json: step 30 of job uid-1"),
                    HasSubstr("ok    weights.safetensors: "), HasSubstr("ok    optimizer.safetensors: ")));
  EXPECT_THAT(good.out, Not(HasSubstr("BAD")));
}

TEST_F(CheckpointVerify, goes_on_after_the_first_bad_file) {
  flip_last_byte(files, folder_of(30) + kWeights);
  files.put(folder_of(30) + "/optimizer.safetensors", "short");
  files.put(folder_of(30) + "/other.txt", "x");
  const Printed bad = verify(folder_of(30));
  EXPECT_EQ(bad.code, 65);
  EXPECT_THAT(bad.out,
              AllOf(HasSubstr("BAD   weights.safetensors: the CRC"),
                    HasSubstr("BAD   optimizer.safetensors: 5 bytes"), HasSubstr("note  other.txt")));
}

TEST_F(CheckpointVerify, a_folder_that_is_none_is_exit_65) {
  EXPECT_EQ(verify("/none").code, 65);
  files.put("/step-000000001/manifest.json", "{\"format\":");
  const Printed bad = verify("/step-000000001");
  EXPECT_EQ(bad.code, 65);
  EXPECT_THAT(bad.out, HasSubstr("BAD   manifest.json"));
  for (const std::string& path : files.paths()) {
    if (path.starts_with(folder_of(10)))
      files.put("/renamed" + path.substr(folder_of(10).size()), *files.read(path, 1 << 20));
  }
  EXPECT_EQ(verify("/renamed").code, 65);
}

TEST_F(CheckpointVerify, an_error_of_the_disk_is_exit_74_whatever_else_is_wrong) {
  flip_last_byte(files, folder_of(30) + "/optimizer.safetensors");
  files.fail_call(4, {base::ErrorCode::kIo, "Input/output error"});
  const Printed result = verify(folder_of(30));
  EXPECT_EQ(result.code, 74) << result.out;
}

TEST_F(CheckpointExport, writes_the_weights_as_one_plain_file) {
  const Printed result = export_to(folder_of(20) + "/", "/out/model.safetensors");
  EXPECT_EQ(result.code, 74) << "there is no folder /out";
  files.put("/out/model.safetensors", "old");
  const Printed written = export_to(folder_of(20) + "/", "/out/model.safetensors");
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(written.out, "/out/model.safetensors: 2 tensors\n");
  NumberedState loaded(0);
  ASSERT_TRUE(read_safetensors(files, "/out/model.safetensors", loaded.weights()).ok());
  EXPECT_EQ(loaded.kernel, NumberedState(20).kernel);
  EXPECT_EQ(*files.read("/out/model.safetensors", 1 << 20), *files.read(folder_of(20) + kWeights, 1 << 20));
}

TEST_F(CheckpointExport, takes_the_optimizer_along_when_asked) {
  files.put("/out/all.safetensors", "old");
  const Printed written =
      export_to(folder_of(20), "/out/all.safetensors", ExportContent::kWeightsAndOptimizer);
  ASSERT_EQ(written.code, 0) << written.err;
  NumberedState loaded(0);
  std::vector<TensorView> all = loaded.weights();
  for (const TensorView& view : loaded.optimizer()) all.push_back(view);
  const auto status = read_safetensors(files, "/out/all.safetensors", all);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(loaded.velocity, NumberedState(20).velocity);
  EXPECT_EQ(loaded.mean, NumberedState(20).mean);
}

TEST_F(CheckpointExport, a_damaged_checkpoint_is_not_exported) {
  flip_last_byte(files, folder_of(20) + kWeights);
  files.put("/out/model.safetensors", "old");
  const Printed result = export_to(folder_of(20), "/out/model.safetensors");
  EXPECT_EQ(result.code, 65);
  EXPECT_THAT(result.err, HasSubstr("the CRC"));
  EXPECT_EQ(*files.read("/out/model.safetensors", 100), "old");
}

TEST(CheckpointCommandLine, chooses_by_name_and_refuses_the_rest) {
  const auto parse = [](std::vector<std::string> words) {
    CLI::App app{"test"};
    CheckpointCommand chosen;
    add_checkpoint_command(app, chosen);
    std::reverse(words.begin(), words.end());  // the library takes them from the end
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return error.get_exit_code() == 0 ? std::string("help") : std::string("refused");
    }
    return chosen.ls->parsed() ? "ls " + chosen.folder
           : chosen.verify->parsed()
               ? "verify " + chosen.folder
               : "export " + chosen.folder + " " + chosen.output + (chosen.with_optimizer ? " all" : "");
  };
  EXPECT_EQ(parse({"checkpoint", "ls", "/c"}), "ls /c");
  EXPECT_EQ(parse({"checkpoint", "verify", "/c/step-000000001"}), "verify /c/step-000000001");
  EXPECT_EQ(parse({"checkpoint", "export", "/c/s", "o"}), "export /c/s o");
  EXPECT_EQ(parse({"checkpoint", "export", "/c/s", "o", "--weights-only"}), "export /c/s o");
  EXPECT_EQ(parse({"checkpoint", "export", "/c/s", "o", "--with-optimizer"}), "export /c/s o all");
  EXPECT_EQ(parse({"checkpoint", "export", "/c/s", "o", "--with-optimizer", "--weights-only"}), "refused");
  EXPECT_EQ(parse({"checkpoint"}), "refused");
  EXPECT_EQ(parse({"checkpoint", "ls"}), "refused");
  EXPECT_EQ(parse({"checkpoint", "rm", "/c"}), "refused");
  for (const char* command : {"ls", "verify", "export"})
    EXPECT_EQ(parse({"checkpoint", command, "--help"}), "help");
}

}  // namespace
}  // namespace evenkeel::trainer
