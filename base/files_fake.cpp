#include "base/files_fake.h"

#include <algorithm>
#include <functional>

namespace evenkeel::base {

// A folder has its names twice: as they are, and as they would be after a crash.
struct FakeFiles::Node {
  bool is_directory = false;
  std::string content;
  std::map<std::string, NodePtr> names;
  std::map<std::string, NodePtr> safe_names;
};

namespace {

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    std::string part = path.substr(at, slash - at);
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
    at = slash + 1;
  }
  return parts;
}

Error failed(const char* doing, const std::string& path, ErrorCode code, const char* why) {
  return Error{code, std::string(doing) + " " + path + ": " + why};
}
Error not_found(const char* doing, const std::string& path) {
  return failed(doing, path, ErrorCode::kNotFound, "No such file or directory");
}

}  // namespace

FakeFiles::FakeFiles() : root_(std::make_shared<Node>()) {
  root_->is_directory = true;
}
FakeFiles::~FakeFiles() = default;

void FakeFiles::fail_call(int n, Error error) {
  const std::lock_guard lock(mutex_);
  call_failure_ = Failure{n, std::move(error), false};
}

void FakeFiles::fail_mutation(int n, Error error) {
  const std::lock_guard lock(mutex_);
  mutation_failure_ = Failure{n, std::move(error), false};
}

void FakeFiles::crash_at_mutation(int n) {
  const std::lock_guard lock(mutex_);
  mutation_failure_ = Failure{n, Error{ErrorCode::kIo, "the machine has crashed"}, true};
}

void FakeFiles::crash() {
  const std::lock_guard lock(mutex_);
  crashed_ = true;
}

void FakeFiles::recover() {
  const std::lock_guard lock(mutex_);
  const std::function<void(Node&)> forget = [&](Node& node) {
    node.names = node.safe_names;
    for (auto& [name, child] : node.names) forget(*child);
  };
  forget(*root_);
  crashed_ = false;
  call_failure_.reset();
  mutation_failure_.reset();
}

int FakeFiles::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

int FakeFiles::mutations() const {
  const std::lock_guard lock(mutex_);
  return mutations_;
}

void FakeFiles::put(const std::string& path, std::string content) {
  const std::lock_guard lock(mutex_);
  Node* node = root_.get();
  for (const std::string& part : parts_of(path)) {
    node->is_directory = true;
    NodePtr& child = node->names[part];
    if (!child) child = std::make_shared<Node>();
    node->safe_names[part] = child;
    node = child.get();
  }
  node->content = std::move(content);
}

std::vector<std::string> FakeFiles::paths() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> found;
  const std::function<void(const Node&, const std::string&)> walk = [&](const Node& node,
                                                                        const std::string& path) {
    if (!node.is_directory) found.push_back(path);
    for (const auto& [name, child] : node.names) walk(*child, path + "/" + name);
  };
  walk(*root_, "");
  std::sort(found.begin(), found.end());
  return found;
}

Status FakeFiles::begin_call(const std::string& what) {
  ++calls_;
  if (crashed_) return Error{ErrorCode::kIo, what + ": the machine has crashed"};
  if (!call_failure_ || --call_failure_->left > 0) return {};
  const Error error = with_context(what, call_failure_->error);
  call_failure_.reset();
  return error;
}

Status FakeFiles::begin_mutation(const std::string& what) {
  EVENKEEL_TRY(begin_call(what));
  ++mutations_;
  if (!mutation_failure_ || --mutation_failure_->left > 0) return {};
  const Error error = with_context(what, mutation_failure_->error);
  crashed_ = mutation_failure_->crashes;
  mutation_failure_.reset();
  return error;
}

FakeFiles::NodePtr FakeFiles::find(const std::string& path) const {
  NodePtr node = root_;
  for (const std::string& part : parts_of(path)) {
    const auto found = node->names.find(part);
    if (found == node->names.end()) return nullptr;
    node = found->second;
  }
  return node;
}

Result<FakeFiles::NodePtr> FakeFiles::file(const char* doing, const std::string& path) const {
  NodePtr node = find(path);
  if (!node) return not_found(doing, path);
  if (node->is_directory) return failed(doing, path, ErrorCode::kInvalidInput, "Is a directory");
  return node;
}

Result<FakeFiles::NodePtr> FakeFiles::parent(const char* doing, const std::string& path) const {
  std::vector<std::string> parts = parts_of(path);
  if (parts.empty()) return failed(doing, path, ErrorCode::kInvalidInput, "Is a directory");
  parts.pop_back();
  NodePtr node = root_;
  for (const std::string& part : parts) {
    const auto found = node->names.find(part);
    if (found == node->names.end()) return not_found(doing, path);
    node = found->second;
  }
  if (!node->is_directory) return failed(doing, path, ErrorCode::kInvalidInput, "Not a directory");
  return node;
}

Result<std::string> FakeFiles::read(const std::string& path, std::size_t max_bytes) {
  const std::lock_guard lock(mutex_);
  EVENKEEL_TRY(begin_call("reading " + path));
  EVENKEEL_ASSIGN(const NodePtr node, file("reading", path));
  if (node->content.size() > max_bytes) {
    return Error{ErrorCode::kInvalidInput, "reading " + path + ": it has " +
                                               std::to_string(node->content.size()) + " bytes, at most " +
                                               std::to_string(max_bytes) + " are allowed"};
  }
  return node->content;
}

Result<std::string> FakeFiles::read_range(const std::string& path, std::uint64_t offset, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  EVENKEEL_TRY(begin_call("reading " + path));
  EVENKEEL_ASSIGN(const NodePtr node, file("reading", path));
  const std::uint64_t size = node->content.size();
  if (offset > size || bytes > size - offset) {
    return Error{ErrorCode::kCorruptData, "reading " + path + ": truncated: " + std::to_string(bytes) +
                                              " bytes wanted at offset " + std::to_string(offset) +
                                              ", the file ends at " + std::to_string(size)};
  }
  return node->content.substr(offset, bytes);
}

Result<std::uint64_t> FakeFiles::size(const std::string& path) {
  const std::lock_guard lock(mutex_);
  EVENKEEL_TRY(begin_call("looking at " + path));
  const NodePtr node = find(path);
  if (!node) return not_found("looking at", path);
  return static_cast<std::uint64_t>(node->content.size());
}

bool FakeFiles::exists(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return begin_call("looking at " + path).ok() && find(path) != nullptr;
}

Result<std::vector<DirEntry>> FakeFiles::list(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  EVENKEEL_TRY(begin_call("listing " + directory));
  const NodePtr node = find(directory);
  if (!node) return not_found("listing", directory);
  if (!node->is_directory) return failed("listing", directory, ErrorCode::kInvalidInput, "Not a directory");
  std::vector<DirEntry> entries;
  for (const auto& [name, child] : node->names) entries.push_back({name, child->is_directory});
  return entries;
}

Status FakeFiles::write_synced(const std::string& path, std::span<const std::string_view> pieces) {
  const std::lock_guard lock(mutex_);
  const bool was_down = crashed_;
  Status status = begin_mutation("writing " + path);
  if (was_down) return status;
  EVENKEEL_ASSIGN(const NodePtr folder, parent("writing", path));
  NodePtr& node = folder->names[parts_of(path).back()];
  if (node && node->is_directory) return failed("writing", path, ErrorCode::kInvalidInput, "Is a directory");
  if (!node) node = std::make_shared<Node>();
  node->content.clear();
  for (const std::string_view piece : pieces) node->content.append(piece);
  if (!status.ok()) node->content.resize(node->content.size() / 2);
  return status;
}

Status FakeFiles::make_directories(const std::string& path) {
  const std::lock_guard lock(mutex_);
  EVENKEEL_TRY(begin_mutation("making the directory " + path));
  NodePtr node = root_;
  for (const std::string& part : parts_of(path)) {
    NodePtr& child = node->names[part];
    if (!child) {
      child = std::make_shared<Node>();
      child->is_directory = true;
    }
    if (!child->is_directory) {
      return failed("making the directory", path, ErrorCode::kInvalidInput, "Not a directory");
    }
    node = child;
  }
  return {};
}

Status FakeFiles::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  const std::string both = from + " to " + to;
  EVENKEEL_TRY(begin_mutation("renaming " + both));
  EVENKEEL_ASSIGN(const NodePtr from_folder, parent("renaming", from));
  EVENKEEL_ASSIGN(const NodePtr to_folder, parent("renaming", to));
  const NodePtr node = find(from), target = find(to);
  if (!node) return not_found("renaming", both);
  if (target && target->is_directory != node->is_directory) {
    return failed("renaming", both, ErrorCode::kInvalidInput,
                  target->is_directory ? "Is a directory" : "Not a directory");
  }
  if (target && target != node && !target->names.empty()) {
    return failed("renaming", both, ErrorCode::kAlreadyExists, "Directory not empty");
  }
  from_folder->names.erase(parts_of(from).back());
  to_folder->names[parts_of(to).back()] = node;
  return {};
}

Status FakeFiles::sync_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  EVENKEEL_TRY(begin_mutation("syncing the directory " + path));
  const NodePtr node = find(path);
  if (!node) return not_found("syncing the directory", path);
  if (!node->is_directory)
    return failed("syncing the directory", path, ErrorCode::kInvalidInput, "Not a directory");
  node->safe_names = node->names;
  return {};
}

Status FakeFiles::remove_all(const std::string& path) {
  const std::lock_guard lock(mutex_);
  EVENKEEL_TRY(begin_mutation("removing " + path));
  const Result<NodePtr> folder = parent("removing", path);
  if (folder.ok()) (*folder)->names.erase(parts_of(path).back());
  return {};  // nothing there: as good as removed
}

}  // namespace evenkeel::base
