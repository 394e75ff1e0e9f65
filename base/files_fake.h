// A file system in memory that fails on demand. Thread safe.
// It forgets what a real one may forget: the content of a written file is safe after write_synced, but a name
// (new, renamed or removed) is safe only after sync_directory of the folder it is in. crash() stops all
// calls; recover() comes back with what was safe. Relative paths start at the root.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"

namespace evenkeel::base {

class FakeFiles : public Files {
 public:
  FakeFiles();
  ~FakeFiles() override;

  // The n-th call from now, counted from 1, fails with `error`; a mutating one is then half done: a written
  // file has half of its bytes, anything else has no effect.
  void fail_call(int n, Error error);
  // The same, counting only the calls that change something (the last five).
  void fail_mutation(int n, Error error);
  // The n-th changing call is half done, and from then on every call fails, until recover().
  void crash_at_mutation(int n);
  void crash();
  void recover();

  // Calls so far: run once to learn the number, then once for each n.
  int calls() const;
  int mutations() const;

  // Sets the stage: the file, with its folders, is there and safe. Fails never, counts nowhere.
  void put(const std::string& path, std::string content);
  // All paths of files, sorted.
  std::vector<std::string> paths() const;

  Result<std::string> read(const std::string& path, std::size_t max_bytes) override;
  Result<std::string> read_range(const std::string& path, std::uint64_t offset, std::size_t bytes) override;
  Result<std::uint64_t> size(const std::string& path) override;
  bool exists(const std::string& path) override;
  Result<std::vector<DirEntry>> list(const std::string& directory) override;
  Status write_synced(const std::string& path, std::span<const std::string_view> pieces) override;
  Status make_directories(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status sync_directory(const std::string& path) override;
  Status remove_all(const std::string& path) override;

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  struct Failure {
    int left = 0;
    Error error;
    bool crashes = false;
  };

  Status begin_call(const std::string& what);
  Status begin_mutation(const std::string& what);
  NodePtr find(const std::string& path) const;
  Result<NodePtr> file(const char* doing, const std::string& path) const;
  Result<NodePtr> parent(const char* doing, const std::string& path) const;

  mutable std::mutex mutex_;
  NodePtr root_;
  bool crashed_ = false;
  int calls_ = 0;
  int mutations_ = 0;
  std::optional<Failure> call_failure_;
  std::optional<Failure> mutation_failure_;
};

}  // namespace evenkeel::base
