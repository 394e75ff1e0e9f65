#include "tests/support/invariants/view.h"

#include <charconv>

#include "contract/labels.h"

namespace evenkeel::invariants {

std::string label(const Json& object, const char* name) {
  return base::string_at(base::at_path(object, {"metadata", "labels"}), name);
}

std::int64_t label_number(const Json& object, const char* name) {
  const std::string text = label(object, name);
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string job_uid(const Json& object) {
  return label(object, contract::kLabelJobUid);
}

std::string controller_uid(const Json& object) {
  const Json& owners = base::at_path(object, {"metadata", "ownerReferences"});
  if (owners.is_array())
    for (const Json& owner : owners)
      if (base::bool_at(owner, "controller") && base::string_at(owner, "kind") == contract::kKind)
        return base::string_at(owner, "uid");
  return "";
}

std::string phase(const Json& object) {
  return base::string_at(base::child(object, "status"), "phase");
}
bool is_job(const Change& change) {
  return change.kind == contract::kKind;
}
bool is_child(const Change& change) {
  return !is_job(change) && !job_uid(change.object).empty();
}
bool terminal(const std::string& phase) {
  return phase == "Succeeded" || phase == "Failed";
}
bool terminating(const Json& object) {
  return !base::string_at(base::child(object, "metadata"), "deletionTimestamp").empty();
}

bool holds_its_place(const Change& pod, const Facts& facts) {
  return pod.type != "DELETED" && !terminal(phase(pod.object)) &&
         !facts.lost_nodes.contains(base::string_at(base::child(pod.object, "spec"), "nodeName"));
}

std::string where(const Call& call) {
  return "audit line " + std::to_string(call.line) + " (" + call.audit_id + ")";
}
std::string where(const Change& change) {
  return "events line " + std::to_string(change.line) + " (version " + std::to_string(change.version) + ")";
}
std::string object_of(const Call& call) {
  return call.resource + " " + call.name_space + "/" + call.name;
}
std::string object_of(const Change& change) {
  return change.kind + " " + change.name_space + "/" + change.name;
}

}  // namespace evenkeel::invariants
