// Saving, stopped everywhere. Three ways to stop: the call fails and the process goes on (a full disk), the
// process is killed (what was done stays), the machine stops (what was not synced is lost). After each there
// is a loadable checkpoint: the previous one or the new one, never a half.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <random>

#include "base/files_fake.h"
#include "trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/checkpoint/checkpoint_writer.h"
#include "trainer/checkpoint/files_killed.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;

const char kRoot[] = "/checkpoints/job";

// Where a save begins. The scenes differ in what the save has to do beside writing.
struct Scene {
  const char* name;
  int keep;
  std::int64_t newest;  // before the save of newest + 1
  std::function<void(base::FakeFiles&)> damage;
};

void save_up_to(base::Files& files, const Scene& scene) {
  for (std::int64_t step = 1; step <= scene.newest; ++step)
    ASSERT_TRUE(save_numbered(files, kRoot, step, scene.keep).ok());
}

std::vector<Scene> scenes() {
  const auto nothing = [](base::FakeFiles&) {};
  return {
      {"the first of all", 3, 0, nothing},
      {"with room", 3, 1, nothing},
      {"one must go", 3, 5, nothing},
      {"only one is kept", 1, 2, nothing},
      {"a kill left folders", 2, 3,
       [](base::FakeFiles& files) {
         files.put("/checkpoints/job/step-000000004.tmp/weights.safetensors", "half");
         files.put("/checkpoints/job/step-000000001.tmp/manifest.json", "{}");
       }},
      {"a bad one of the same step is in the way", 2, 3,
       [](base::FakeFiles& files) {
         files.put("/checkpoints/job/step-000000004/manifest.json", "{\"format\":1");
       }},
  };
}

// Saves newest + 1 through the writer, as the training does.
base::Result<SavedCheckpoint> save_next(base::Files& files, const Scene& scene) {
  CheckpointWriter writer(files, kRoot, scene.keep);
  NumberedState state(scene.newest + 1);
  writer.begin(state.manifest, state.weights(), state.optimizer());
  return writer.wait()->saved;
}

int calls_of_a_save(const Scene& scene) {
  base::FakeFiles files;
  save_up_to(files, scene);
  scene.damage(files);
  KilledFiles counted(files, 0);
  EXPECT_TRUE(save_next(counted, scene).ok());
  return counted.calls();
}

// What must hold at every moment, and that the next run goes on from there and tidies up.
void check(base::FakeFiles& files, const Scene& scene, const base::Result<SavedCheckpoint>& saved) {
  const std::int64_t step = newest_numbered(files, kRoot);
  EXPECT_TRUE(step == scene.newest || step == scene.newest + 1) << "leaves step " << step;
  if (saved.ok()) {
    EXPECT_EQ(step, scene.newest + 1) << "it was said to be safe";
  }
  for (std::int64_t next = scene.newest + 1; next <= scene.newest + 2; ++next) {
    const auto again = save_numbered(files, kRoot, next, scene.keep);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(newest_numbered(files, kRoot), next);
  }
  EXPECT_LE(count_checkpoints(files, kRoot), scene.keep);
  for (const auto& entry : *files.list(kRoot)) {
    EXPECT_TRUE(contract::parse_checkpoint_directory_name(entry.name).ok()) << entry.name << " is left over";
  }
}

TEST(Crash, an_error_of_any_call_is_survived) {
  for (const Scene& scene : scenes()) {
    const int calls = calls_of_a_save(scene);
    ASSERT_GT(calls, 8) << scene.name;
    for (int n = 1; n <= calls; ++n) {
      for (const char* reason : {"No space left on device", "Input/output error"}) {
        SCOPED_TRACE(std::string(scene.name) + ": " + reason + " at call " + std::to_string(n));
        base::FakeFiles files;
        save_up_to(files, scene);
        scene.damage(files);
        files.fail_call(n, {ErrorCode::kIo, reason});
        const auto saved = save_next(files, scene);
        if (!saved.ok()) {
          // A failed look at what is there shows later, as a name that is taken.
          const std::string& message = saved.error().message;
          EXPECT_TRUE(message.find(reason) != std::string::npos ||
                      message.find("Directory not empty") != std::string::npos)
              << message;
        }
        check(files, scene, saved);
      }
    }
  }
}

TEST(Crash, a_kill_at_any_call_is_survived) {
  for (const Scene& scene : scenes()) {
    const int calls = calls_of_a_save(scene);
    for (int n = 1; n <= calls; ++n) {
      SCOPED_TRACE(std::string(scene.name) + ": killed at call " + std::to_string(n));
      base::FakeFiles files;
      save_up_to(files, scene);
      scene.damage(files);
      KilledFiles killed(files, n);
      const auto saved = save_next(killed, scene);
      check(files, scene, saved);
    }
  }
}

TEST(Crash, a_machine_that_stops_at_any_call_loses_nothing_that_was_said_to_be_safe) {
  for (const Scene& scene : scenes()) {
    const int calls = calls_of_a_save(scene);
    for (int n = 1; n <= calls; ++n) {
      SCOPED_TRACE(std::string(scene.name) + ": the machine stops at call " + std::to_string(n));
      base::FakeFiles files;
      save_up_to(files, scene);
      scene.damage(files);
      KilledFiles killed(files, n);
      const auto saved = save_next(killed, scene);
      files.crash();
      files.recover();
      check(files, scene, saved);
    }
  }
}

// ---- real files, a real process, a real SIGKILL

// Tells every call through a pipe before it is made, so that the kill comes at a moment of the parent's
// choice, and then somewhere inside or behind the call.
class ToldFiles : public base::Files {
 public:
  explicit ToldFiles(int pipe) : pipe_(pipe) {}
  void tell(char what) const { [[maybe_unused]] const ssize_t written = ::write(pipe_, &what, 1); }

  base::Result<std::string> read(const std::string& path, std::size_t max_bytes) override {
    return tell('c'), real_.read(path, max_bytes);
  }
  base::Result<std::string> read_range(const std::string& path, std::uint64_t offset,
                                       std::size_t bytes) override {
    return tell('c'), real_.read_range(path, offset, bytes);
  }
  base::Result<std::uint64_t> size(const std::string& path) override { return tell('c'), real_.size(path); }
  bool exists(const std::string& path) override { return tell('c'), real_.exists(path); }
  base::Result<std::vector<base::DirEntry>> list(const std::string& directory) override {
    return tell('c'), real_.list(directory);
  }
  base::Status write_synced(const std::string& path, std::span<const std::string_view> pieces) override {
    return tell('c'), real_.write_synced(path, pieces);
  }
  base::Status make_directories(const std::string& path) override {
    return tell('c'), real_.make_directories(path);
  }
  base::Status rename(const std::string& from, const std::string& to) override {
    return tell('c'), real_.rename(from, to);
  }
  base::Status sync_directory(const std::string& path) override {
    return tell('c'), real_.sync_directory(path);
  }
  base::Status remove_all(const std::string& path) override { return tell('c'), real_.remove_all(path); }

 private:
  const int pipe_;
  base::Files& real_ = base::real_files();
};

constexpr std::size_t kElements = 50'000;  // 200 kB: a write takes long enough to be hit inside

// The child: saves step after step until it is killed; 's' when one was said to be safe.
[[noreturn]] void save_until_killed(const std::string& root, std::int64_t from, int pipe) {
  ToldFiles files(pipe);
  for (std::int64_t step = from + 1;; ++step) {
    CheckpointWriter writer(files, root, 3);
    NumberedState state(step, kElements);
    writer.begin(state.manifest, state.weights(), state.optimizer());
    if (!writer.wait()->saved.ok()) _exit(1);
    files.tell('s');
  }
}

// Lets the child make `calls` calls, kills it, and returns how many saves it said were safe.
std::int64_t run_and_kill(const std::string& root, std::int64_t from, int calls) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    save_until_killed(root, from, ends[1]);
  }
  close(ends[1]);
  std::int64_t safe = 0;
  char what = 0;
  for (int seen = 0; seen < calls && ::read(ends[0], &what, 1) == 1;) {
    safe += what == 's' ? 1 : 0;
    seen += what == 'c' ? 1 : 0;
  }
  kill(child, SIGKILL);
  while (::read(ends[0], &what, 1) == 1) safe += what == 's' ? 1 : 0;  // what it said before it died
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
  close(ends[0]);
  return safe;
}

TEST(Crash, killed_fifty_times_at_random_every_start_finds_what_was_safe) {
  char folder[] = "/tmp/evenkeel-crash-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string root = std::string(folder) + "/checkpoints";
  base::Files& files = base::real_files();
  std::mt19937 random(20);
  std::int64_t reached = 0;
  int most = 0;  // complete ones that may be there: old ones go only after a save
  for (int round = 1; round <= 50; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    // A save is about 14 calls: somewhere in the first three.
    const std::int64_t safe = run_and_kill(root, reached, 1 + static_cast<int>(random() % 42));
    const std::int64_t found = newest_numbered(files, root, kElements);
    EXPECT_GE(found, reached + safe) << "a step that was safe is gone";
    EXPECT_LE(found, reached + safe + 1);
    most = safe > 0 ? 4 : most + 1;  // three kept, and one that was just renamed
    EXPECT_LE(count_checkpoints(files, root), most);
    reached = found;
  }
  EXPECT_GT(reached, 25);
  ASSERT_TRUE(save_numbered(files, root, reached + 1, 3, kElements).ok());
  EXPECT_EQ(count_checkpoints(files, root), 3);
  EXPECT_EQ(files.list(root)->size(), 3u) << "nothing is left over";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace evenkeel::trainer
