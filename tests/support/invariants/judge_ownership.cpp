// I2 and I5: whose children are made and deleted.
#include "tests/support/invariants/judge.h"
#include "tests/support/invariants/view.h"

namespace evenkeel::invariants {
namespace {

bool judged_kind(const std::string& resource) {
  return resource == "pods" || resource == "services" || resource == "configmaps" || resource == "trainingjobs";
}

// Objects by UID, as they were last seen: what a delete may name.
std::map<std::string, const Change*> by_uid(const Trace& trace) {
  std::map<std::string, const Change*> all;
  for (const Change& change : trace.changes) all[change.uid] = &change;
  return all;
}

// "" if this delete is right.
std::string fault_of_delete(const Call& call, const std::map<std::string, const Change*>& objects) {
  if (call.verb == "deletecollection") return "a delete of many objects names no UID";
  const std::string uid = base::string_at(base::child(call.body, "preconditions"), "uid");
  if (uid.empty()) return "the delete names no UID";
  const auto object = objects.find(uid);
  if (object == objects.end()) return call.done() ? "nobody has seen an object of UID " + uid : "";
  if (object->second->name != call.name || object->second->name_space != call.name_space)
    return "UID " + uid + " is that of " + object_of(*object->second);
  if (is_job(*object->second)) return terminal(phase(object->second->object)) ? "" : "the job has not ended";
  return controller_uid(object->second->object).empty() ? "no TrainingJob owns the object" : "";
}

std::string fault_of_owner(const Change& child) {
  const std::string owner = controller_uid(child.object);
  if (owner.empty()) return "it has no TrainingJob as its controller";
  const std::string labelled = job_uid(child.object);
  return owner == labelled ? "" : "its controller is " + owner + ", its label says " + labelled;
}

}  // namespace

Violations children_have_their_controller(const Trace& trace) {
  Violations found;
  std::map<std::string, double> going;  // jobs that are being deleted, or are gone, since when
  for (const Change& change : trace.changes) {
    if (is_job(change) && (change.type == "DELETED" || terminating(change.object)))
      going.emplace(change.uid, change.seen);
    if (change.type != "ADDED" || !is_child(change)) continue;
    const std::string fault = fault_of_owner(change);
    if (!fault.empty()) found.push_back({"I2", fault, where(change), object_of(change)});
    // A create that was on its way when the job was deleted is no decision against the job.
    const auto since = going.find(job_uid(change.object));
    if (since != going.end() && change.seen > since->second + trace.facts.slack_seconds)
      found.push_back({"I2", "it was made after its job was deleted", where(change), object_of(change)});
  }
  return found;
}

Violations deletes_name_an_owned_object(const Trace& trace) {
  Violations found;
  const auto objects = by_uid(trace);
  for (const Call& call : trace.calls) {
    if (!call.by_operator || !call.verb.starts_with("delete") || !judged_kind(call.resource)) continue;
    const std::string fault = fault_of_delete(call, objects);
    if (!fault.empty()) found.push_back({"I5", fault, where(call), object_of(call)});
  }
  return found;
}

}  // namespace evenkeel::invariants
