#include "operator/kube/object_store.h"

#include <algorithm>
#include <charconv>

#include "contract/labels.h"

namespace evenkeel::oper {
namespace {

std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Half of every object and of no use here.
void strip(Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return;
  metadata->erase("managedFields");
  const auto annotations = metadata->find("annotations");
  if (annotations != metadata->end() && annotations->is_object())
    annotations->erase("kubectl.kubernetes.io/last-applied-configuration");
}

}  // namespace

StoreChange ObjectStore::head_of(const Json& object) const {
  const Json& metadata = base::child(object, "metadata");
  StoreChange head;
  head.uid = base::string_at(metadata, "uid");
  head.name_space = base::string_at(metadata, "namespace");
  head.name = base::string_at(metadata, "name");
  head.resource_version = base::string_at(metadata, "resourceVersion");
  head.deleting = !base::string_at(metadata, "deletionTimestamp").empty();
  const Json& labels = base::child(metadata, "labels");
  head.job_name = owner_ == Owner::kSelf ? head.name : base::string_at(labels, contract::kLabelJobName);
  head.job_uid = owner_ == Owner::kSelf ? head.uid : base::string_at(labels, contract::kLabelJobUid);
  return head;
}

int ObjectStore::compare_versions(const std::string& a, const std::string& b) const {
  if (!comparable_ || a == b) return 0;
  const auto left = number(a), right = number(b);
  if (!left || !right || *left == *right) return 0;
  return *left < *right ? -1 : 1;
}

void ObjectStore::put(Json object) {
  if (!object.is_object()) return;
  StoreChange head = head_of(object);
  if (head.uid.empty() || head.name.empty()) return;
  strip(object);
  std::vector<StoreChange> changes;
  {
    const std::lock_guard lock(mutex_);
    const auto held = by_uid_.find(head.uid);
    if (held != by_uid_.end()) {
      const StoreChange& old = held->second.head;
      if (old.resource_version == head.resource_version) return;
      if (compare_versions(head.resource_version, old.resource_version) < 0) return;
      if (old.job_uid != head.job_uid) by_job_[old.job_uid].erase(head.uid);
      head.type = ChangeType::kModified;
    }
    by_job_[head.job_uid].insert(head.uid);
    by_name_[head.name_space + "/" + head.name].insert(head.uid);
    by_uid_[head.uid] = Entry{head, base::dump_json(object)};
    changes.push_back(std::move(head));
  }
  notify(changes);
}

void ObjectStore::erase_locked(std::map<std::string, Entry>::iterator entry,
                               std::vector<StoreChange>& changes) {
  StoreChange head = entry->second.head;
  head.type = ChangeType::kDeleted;
  head.deleting = true;
  const auto drop = [&](auto& index, const std::string& key) {
    const auto found = index.find(key);
    if (found == index.end()) return;
    found->second.erase(head.uid);
    if (found->second.empty()) index.erase(found);
  };
  drop(by_job_, head.job_uid);
  drop(by_name_, head.name_space + "/" + head.name);
  by_uid_.erase(entry);
  changes.push_back(std::move(head));
}

void ObjectStore::erase(const std::string& uid) {
  std::vector<StoreChange> changes;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = by_uid_.find(uid);
    if (entry != by_uid_.end()) erase_locked(entry, changes);
  }
  notify(changes);
}

void ObjectStore::keep_only(const std::string& name_space, const std::set<std::string>& uids) {
  std::vector<StoreChange> changes;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = by_uid_.begin(); entry != by_uid_.end();) {
      const auto current = entry++;
      const bool covered = name_space.empty() || current->second.head.name_space == name_space;
      if (covered && !uids.contains(current->first)) erase_locked(current, changes);
    }
  }
  notify(changes);
}

void ObjectStore::notify(const std::vector<StoreChange>& changes) const {
  if (!handler_) return;
  for (const StoreChange& change : changes) handler_(change);
}

Json ObjectStore::parse(const Entry& entry) {
  auto object = base::parse_json(entry.text, {.max_bytes = 64u << 20, .max_depth = 128});
  return object.ok() ? std::move(*object) : Json::object();
}

std::optional<Json> ObjectStore::get(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  const auto entry = by_uid_.find(uid);
  if (entry == by_uid_.end()) return std::nullopt;
  return parse(entry->second);
}

std::optional<Json> ObjectStore::get_by_name(const std::string& name_space, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name_space + "/" + name);
  if (found == by_name_.end()) return std::nullopt;
  const Entry* best = nullptr;
  for (const std::string& uid : found->second) {
    const Entry& entry = by_uid_.at(uid);
    if (!best || (best->head.deleting && !entry.head.deleting) ||
        (best->head.deleting == entry.head.deleting &&
         compare_versions(entry.head.resource_version, best->head.resource_version) > 0))
      best = &entry;
  }
  return parse(*best);
}

std::vector<Json> ObjectStore::of_job(const std::string& job_uid) const {
  std::vector<std::pair<std::string, Json>> found;
  {
    const std::lock_guard lock(mutex_);
    const auto uids = by_job_.find(job_uid);
    if (uids == by_job_.end()) return {};
    for (const std::string& uid : uids->second) {
      const Entry& entry = by_uid_.at(uid);
      found.emplace_back(entry.head.name, parse(entry));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Json> objects;
  for (auto& [name, object] : found) objects.push_back(std::move(object));
  return objects;
}

std::vector<Json> ObjectStore::all() const {
  std::vector<Json> objects;
  const std::lock_guard lock(mutex_);
  for (const auto& [uid, entry] : by_uid_) objects.push_back(parse(entry));
  return objects;
}

std::size_t ObjectStore::size() const {
  const std::lock_guard lock(mutex_);
  return by_uid_.size();
}

void ObjectStore::mark_synced(const std::string& name_space) {
  const std::lock_guard lock(mutex_);
  synced_.insert(name_space);
}

bool ObjectStore::synced(const std::string& name_space) const {
  const std::lock_guard lock(mutex_);
  return synced_.contains(name_space);
}

}  // namespace evenkeel::oper
