#include "trainer/checkpoint/init_from.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/files_fake.h"
#include "trainer/checkpoint/checkpoint.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A backbone and a head of 10 classes, all ones; and something that is no weight of the model.
struct Stored {
  std::vector<float> kernel = std::vector<float>(6, 1.0f), mean = std::vector<float>(3, 1.0f),
                     head = std::vector<float>(30, 1.0f), extra = std::vector<float>(2, 1.0f);
  std::vector<TensorView> views() {
    return {{"conv.kernel", {2, 3}, kernel},
            {"bn.running_mean", {3}, mean},
            {"fc.kernel", {3, 10}, head},
            {"extra", {2}, extra}};
  }
};

// The model to be trained: the same backbone, 5 classes, one layer more. Zeros.
struct Model {
  std::vector<float> kernel = std::vector<float>(6), mean = std::vector<float>(3),
                     head = std::vector<float>(15), fresh = std::vector<float>(4);
  std::vector<TensorView> views() {
    return {{"conv.kernel", {2, 3}, kernel},
            {"bn.running_mean", {3}, mean},
            {"fc.kernel", {3, 5}, head},
            {"new.kernel", {4}, fresh}};
  }
};

std::string content_of(const std::vector<TensorView>& tensors) {
  std::string content = safetensors_header(tensors);
  for (const TensorView& t : tensors)
    content.append(reinterpret_cast<const char*>(t.values.data()), t.values.size_bytes());
  return content;
}

TEST(InitFrom, loads_what_fits_and_lists_the_rest) {
  base::FakeFiles files;
  Stored stored;
  files.put("/w/base.safetensors", content_of(stored.views()));
  Model model;
  const auto report = load_initial_weights(files, "/w/base.safetensors", {}, model.views());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_THAT(report->loaded, ElementsAre("conv.kernel", "bn.running_mean"));
  EXPECT_THAT(report->skipped, IsEmpty());
  EXPECT_THAT(report->missing_in_file, ElementsAre("new.kernel"));
  EXPECT_THAT(report->other_shape,
              ElementsAre("fc.kernel: F32 (3, 10) in the file, F32 (3, 5) in the model"));
  EXPECT_THAT(report->unused_in_file, ElementsAre("extra"));
  EXPECT_EQ(model.kernel, stored.kernel);
  EXPECT_EQ(model.mean, stored.mean);
  EXPECT_EQ(model.head, std::vector<float>(15));
  EXPECT_EQ(to_text(*report),
            "loaded 2 of 4 tensors from /w/base.safetensors\n"
            "  not in the file (1): new.kernel\n"
            "  of another shape or type (1): fc.kernel: F32 (3, 10) in the file, F32 (3, 5) in the model\n"
            "  in the file, not in the model (1): extra");
}

TEST(InitFrom, leaves_alone_what_is_skipped) {
  base::FakeFiles files;
  Stored stored;
  files.put("/w.safetensors", content_of(stored.views()));
  Model model;
  const auto report =
      load_initial_weights(files, "/w.safetensors", {"^fc\\.", "running_(mean|var)$"}, model.views());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_THAT(report->loaded, ElementsAre("conv.kernel"));
  EXPECT_THAT(report->skipped, ElementsAre("bn.running_mean", "fc.kernel"));
  EXPECT_EQ(model.mean, std::vector<float>(3));
}

TEST(InitFrom, takes_the_weights_of_a_checkpoint_after_checking_them) {
  base::FakeFiles files;
  Stored stored;
  contract::CheckpointManifest manifest;
  manifest.step = 7;
  manifest.job_uid = "another job";
  std::vector<float> velocity(6);
  ASSERT_TRUE(
      save_checkpoint(files, "/c", manifest, stored.views(), {{"conv.kernel.velocity", {6}, velocity}}, 1)
          .ok());
  Model model;
  const auto report = load_initial_weights(files, "/c/step-000000007", {}, model.views());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->source, "/c/step-000000007/weights.safetensors");
  EXPECT_EQ(report->loaded.size(), 2u);

  std::string damaged = *files.read("/c/step-000000007/weights.safetensors", 1 << 20);
  damaged.back() ^= 1;
  files.put("/c/step-000000007/weights.safetensors", damaged);
  const auto refused = load_initial_weights(files, "/c/step-000000007", {}, model.views());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kCorruptData);
  EXPECT_THAT(refused.error().message, HasSubstr("weights.safetensors: the CRC"));
}

TEST(InitFrom, nothing_loaded_is_an_error_that_says_what_there_was) {
  base::FakeFiles files;
  Stored stored;
  files.put("/w.safetensors", content_of(stored.views()));
  std::vector<float> other(2);
  const auto refused = load_initial_weights(files, "/w.safetensors", {}, {{"dense.kernel", {2}, other}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(refused.error().message, HasSubstr("nothing of it fits the model"));
  EXPECT_THAT(refused.error().message, HasSubstr("not in the file (1): dense.kernel"));
  EXPECT_THAT(refused.error().message, HasSubstr("in the file, not in the model (4): conv.kernel, "));
}

TEST(InitFrom, a_bad_expression_is_named_before_anything_is_read) {
  base::FakeFiles files;
  Model model;
  for (const std::string& bad : {std::string("fc.("), std::string("[a-"), std::string(2000, '(')}) {
    const auto refused = load_initial_weights(files, "/none", {"ok", bad}, model.views());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(refused.error().message, HasSubstr("model.initFrom.skip: \"" + bad.substr(0, 200) + "\""));
  }
  EXPECT_EQ(files.calls(), 0);
}

TEST(InitFrom, files_that_are_none_are_refused_by_name) {
  base::FakeFiles files;
  files.put("/folder/readme", "x");
  files.put("/text.safetensors", "hello, this is no such file");
  Stored stored;
  stored.kernel[3] = std::numeric_limits<float>::quiet_NaN();
  files.put("/nan.safetensors", content_of(stored.views()));
  Model model;
  const std::tuple<const char*, ErrorCode, const char*> table[] = {
      {"/none.safetensors", ErrorCode::kNotFound, "No such file"},
      {"/folder", ErrorCode::kNotFound, "/folder/manifest.json"},
      {"/text.safetensors", ErrorCode::kCorruptData, "a header of"},
      {"/nan.safetensors", ErrorCode::kCorruptData, "\"conv.kernel\" holds a value that is not finite"},
  };
  for (const auto& [path, code, words] : table) {
    const auto refused = load_initial_weights(files, path, {}, model.views());
    ASSERT_FALSE(refused.ok()) << path;
    EXPECT_EQ(refused.error().code, code) << refused.error().message;
    EXPECT_THAT(refused.error().message, HasSubstr(words));
    EXPECT_THAT(refused.error().message, HasSubstr(std::string("model.initFrom ") + path));
  }
}

TEST(InitFrom, a_type_other_than_fp32_is_listed_not_converted) {
  base::FakeFiles files;
  const std::vector<SafetensorsEntry> entries{{"conv.kernel", "F16", {2, 3}, 0, 12},
                                              {"new.kernel", "F32", {4}, 12, 28}};
  files.put("/w", safetensors_header(entries) + std::string(28, '\0'));
  Model model;
  const auto report = load_initial_weights(files, "/w", {}, model.views());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_THAT(report->loaded, ElementsAre("new.kernel"));
  EXPECT_THAT(report->other_shape,
              ElementsAre("conv.kernel: F16 (2, 3) in the file, F32 (2, 3) in the model"));
}

}  // namespace
}  // namespace evenkeel::trainer
