// What the watches have told: one store for each kind, by UID, so that a late event of an old object never
// touches its successor of the same name. Objects lie as text (a tenth of the memory of parsed JSON) without
// managedFields. Written by list_watch, read by runtime. Thread safe; the handler is called without the lock.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace evenkeel::oper {

using base::Json;

enum class ChangeType { kAdded, kModified, kDeleted };

struct StoreChange {
  ChangeType type = ChangeType::kAdded;
  std::string uid;
  std::string name_space;
  std::string name;
  std::string resource_version;
  std::string job_name;  // by label; for a TrainingJob its own name and UID
  std::string job_uid;
  bool deleting = false;  // deletionTimestamp is set: as good as gone
};

class ObjectStore {
 public:
  enum class Owner { kSelf, kByLabel };  // kSelf: TrainingJob
  using Handler = std::function<void(const StoreChange&)>;

  explicit ObjectStore(Owner owner) : owner_(owner) {}
  // Before the first write.
  void set_handler(Handler handler) { handler_ = std::move(handler); }

  // Drops what is older than held, where versions can be compared. Objects without UID or name are ignored.
  void put(Json object);
  void erase(const std::string& uid);
  // After a full list of `name_space` (empty: all): everything else there is gone.
  void keep_only(const std::string& name_space, const std::set<std::string>& uids);

  std::optional<Json> get(const std::string& uid) const;
  // The living object of that name, or the last one that is going.
  std::optional<Json> get_by_name(const std::string& name_space, const std::string& name) const;
  // Sorted by name.
  std::vector<Json> of_job(const std::string& job_uid) const;
  std::vector<Json> all() const;
  std::size_t size() const;

  // From Kubernetes 1.35 resourceVersions are integers that may be compared; before, only for equality.
  void set_versions_comparable(bool comparable) { comparable_ = comparable; }
  bool versions_comparable() const { return comparable_; }
  // 0 for equal or unknown.
  int compare_versions(const std::string& a, const std::string& b) const;

  // Namespaces (or "" for all) whose first full list has come.
  void mark_synced(const std::string& name_space);
  bool synced(const std::string& name_space) const;

 private:
  struct Entry {
    StoreChange head;
    std::string text;
  };
  StoreChange head_of(const Json& object) const;
  static Json parse(const Entry& entry);
  void erase_locked(std::map<std::string, Entry>::iterator entry, std::vector<StoreChange>& changes);
  void notify(const std::vector<StoreChange>& changes) const;

  const Owner owner_;
  Handler handler_;
  std::atomic<bool> comparable_{false};
  mutable std::mutex mutex_;
  std::map<std::string, Entry> by_uid_;
  std::map<std::string, std::set<std::string>> by_job_;   // job UID -> UIDs
  std::map<std::string, std::set<std::string>> by_name_;  // namespace/name -> UIDs
  std::set<std::string> synced_;
};

}  // namespace evenkeel::oper
