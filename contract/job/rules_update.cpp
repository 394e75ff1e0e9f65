// What of a spec may change, and when. Transition rules sit at the spec, because rules below lists may not
// look back. Free at any time: suspend, restart (but for its scope and its silence limit, which the trainer
// knows), deadlines, cleanup, and the size of a scalable job.
#include <string>
#include <string_view>

#include "contract/job/json_same.h"
#include "contract/job/schema_parts.h"

namespace evenkeel::contract {
namespace {

// The trained thing itself: checkpoints and the ledger of samples would no longer fit it.
constexpr const char* kNever[] = {"strategy",        "model",          "dataset.format",
                                  "dataset.split",   "dataset.image",  "dataset.sharding",
                                  "dataset.shuffle", "dataset.augment"};

// What a new attempt reads again.
constexpr const char* kWhileSuspended[] = {"workers.image",
                                           "workers.resources",
                                           "workers.overrides",
                                           "workers.podOptions",
                                           "workers.minReplicas",
                                           "workers.maxReplicas",
                                           "coordinator",
                                           "dataset.path",
                                           "dataset.volume",
                                           "dataset.onBadRecord",
                                           "training",
                                           "scheduling",
                                           "checkpoint",
                                           "balance",
                                           "tune",
                                           "metrics",
                                           "restart.scope",
                                           "restart.failureDetectionSeconds"};

const Json* find(const Json& value, std::string_view path) {
  const auto dot = path.find('.');
  const auto member = value.is_object() ? value.find(std::string(path.substr(0, dot))) : value.end();
  if (!value.is_object() || member == value.end()) return nullptr;
  return dot == std::string_view::npos ? &*member : find(*member, path.substr(dot + 1));
}

bool same_at(const Json& self, const Json& old_self, std::string_view path) {
  const Json* now = find(self, path);
  const Json* before = find(old_self, path);
  if (now == nullptr || before == nullptr) return now == before;
  return same_json(*now, *before);
}

bool suspended_before_or_after(const Json& self, const Json& old_self) {
  return base::bool_at(self, "suspend") || base::bool_at(old_self, "suspend");
}

// has(self.a) && has(self.a.b)
std::string present(const std::string& root, const std::string& path) {
  std::string cel;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    cel += "has(" + root + "." + path.substr(0, dot) + ") && ";
  }
  return cel + "has(" + root + "." + path + ")";
}

// Guarded on both sides: a rule that errors would also block the status.
std::string unchanged(const std::string& path) {
  return "(" + present("self", path) + ") == (" + present("oldSelf", path) + ") && (!(" +
         present("self", path) + ") || self." + path + " == oldSelf." + path + ")";
}

constexpr char kSuspendedCel[] =
    "(has(self.suspend) && self.suspend) || (has(oldSelf.suspend) && oldSelf.suspend) || ";

FieldRule never_rule(const std::string& path) {
  return {
      .cel = unchanged(path),
      .message =
          path + " cannot change: the checkpoints and the order of the samples belong to it; make a new job",
      .holds = [path](const Json& self, const Json& old_self) { return same_at(self, old_self, path); },
      .transition = true,
      .field_path = "." + path};
}

FieldRule while_suspended_rule(const std::string& path) {
  return {
      .cel = kSuspendedCel + ("(" + unchanged(path) + ")"),
      .message =
          path + " changes only while the job is suspended; set suspend: true before, or in the same request",
      .holds =
          [path](const Json& self, const Json& old_self) {
            return suspended_before_or_after(self, old_self) || same_at(self, old_self, path);
          },
      .transition = true,
      .field_path = "." + path};
}

// Without maxReplicas it may shrink only. That the new size lies in the range is asked of every spec.
bool scales_while_it_runs(const Json& self, const Json& old_self) {
  const Json* now = find(self, "workers.replicas");
  const Json* before = find(old_self, "workers.replicas");
  if (find(self, "workers.minReplicas") == nullptr || now == nullptr || before == nullptr) return false;
  return find(self, "workers.maxReplicas") != nullptr || *now <= *before;
}

FieldRule fixed_size_rule() {
  const std::string path = "workers.replicas";
  return {.cel = kSuspendedCel + ("(" + unchanged(path) + ")") +
                 " || (has(self.workers) && has(self.workers.minReplicas) && has(self.workers.replicas) && "
                 "(has(self.workers.maxReplicas) || has(oldSelf.workers) && has(oldSelf.workers.replicas) && "
                 "self.workers.replicas <= oldSelf.workers.replicas))",
          .message =
              "workers.replicas: a running job has a fixed size unless minReplicas (to grow also "
              "maxReplicas) is set; suspend it first (suspend: true), or in the same request",
          .holds =
              [path](const Json& self, const Json& old_self) {
                return suspended_before_or_after(self, old_self) || same_at(self, old_self, path) ||
                       scales_while_it_runs(self, old_self);
              },
          .transition = true,
          .field_path = "." + path};
}

}  // namespace

std::vector<FieldRule> update_rules() {
  std::vector<FieldRule> rules{fixed_size_rule()};
  for (const char* path : kNever) rules.push_back(never_rule(path));
  for (const char* path : kWhileSuspended) rules.push_back(while_suspended_rule(path));
  return rules;
}

}  // namespace evenkeel::contract
