// spec as a whole, and the rules that look at more than one of its parts.
#include "contract/job/schema.h"

#include "contract/job/field_builder.h"
#include "contract/job/names.h"
#include "contract/job/schema_parts.h"
#include "contract/labels.h"

namespace evenkeel::contract {
namespace {

FieldRule managed_by_rule() {
  return {.cel = "self == oldSelf",
          .message = "managedBy cannot change; make a new job",
          .holds = [](const Json& self, const Json& old_self) { return self == old_self; },
          .transition = true};
}

bool pod_local(const Json& volume) {
  return volume.contains("emptyDir") || volume.contains("ephemeral");
}

FieldRule shared_checkpoint_rule() {
  return {.cel =
              "!has(self.checkpoint) || !has(self.checkpoint.volume) || !has(self.workers) || "
              "!has(self.workers.replicas) || (self.workers.replicas == 1 && "
              "(!has(self.workers.maxReplicas) || self.workers.maxReplicas == 1)) || "
              "!(has(self.checkpoint.volume.emptyDir) || has(self.checkpoint.volume.ephemeral))",
          .message =
              "checkpoint.volume: with more than one worker emptyDir and ephemeral are a different "
              "folder in every pod; "
              "use a persistentVolumeClaim that all can mount",
          .holds =
              [](const Json& self, const Json&) {
                const Json& workers = base::child(self, "workers");
                const bool alone =
                    base::int_at(workers, "replicas") == 1 && base::int_at(workers, "maxReplicas", 1) == 1;
                return alone || !pod_local(base::at_path(self, {"checkpoint", "volume"}));
              },
          .field_path = ".checkpoint.volume"};
}

FieldRule separate_paths_rule() {
  return {.cel =
              "!has(self.checkpoint) || !has(self.checkpoint.path) || !has(self.dataset) || "
              "!has(self.dataset.path) || "
              "self.checkpoint.path != self.dataset.path",
          .message = "checkpoint.path {dataset.path} is also dataset.path; choose another folder",
          .holds =
              [](const Json& self, const Json&) {
                return !self.contains("checkpoint") || self["checkpoint"]["path"] != self["dataset"]["path"];
              },
          .field_path = ".checkpoint.path"};
}

FieldRule scalable_scope_rule() {
  return {.cel =
              "!has(self.workers) || !has(self.workers.minReplicas) || !has(self.restart) || "
              "!has(self.restart.scope) || self.restart.scope == 'Worker'",
          .message =
              "restart.scope {restart.scope} has all pods start together, so workers.minReplicas has no use; "
              "take Worker, or leave minReplicas out",
          .holds =
              [](const Json& self, const Json&) {
                return !base::child(self, "workers").contains("minReplicas") ||
                       base::string_at(base::child(self, "restart"), "scope", "Worker") == "Worker";
              },
          .field_path = ".restart.scope"};
}

Field make_spec() {
  std::vector<Field> fields{boolean("suspend",
                                    "Whether the job waits without pods; may change at any time, and a "
                                    "resumed job goes on from its checkpoint.")
                                .defaults(false),
                            text("managedBy",
                                 "Name of the controller that runs this job; another value than the default "
                                 "makes this operator keep its hands off.")
                                .length(1, 63)
                                .defaults(kDefaultManagedBy)
                                .rule(managed_by_rule()),
                            strategy_field(),
                            workers_field(),
                            coordinator_field(),
                            reducers_field(),
                            parameter_servers_field(),
                            model_field(),
                            dataset_field(),
                            training_field()};
  for (Field& field : operations_fields()) fields.push_back(field);
  return object("spec", "What to train, on what, and how.", fields)
      .required()
      .rule(shared_checkpoint_rule())
      .rule(separate_paths_rule())
      .rule(scalable_scope_rule())
      .rules(update_rules());
}

std::string job_name(const Json& object) {
  return base::string_at(base::child(object, "metadata"), "name");
}

bool is_dns_label(const std::string& name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.empty() || !lower(name.front()) || name.back() == '-') return false;
  for (char c : name) {
    if (!lower(c) && !digit(c) && c != '-') return false;
  }
  return true;
}

std::vector<FieldRule> make_object_rules() {
  const std::string limit = std::to_string(kMaxJobNameLength);
  return {{.cel = "size(self.metadata.name) <= " + limit,
           .message = "metadata.name {metadata.name} has {#metadata.name} characters; at most " + limit +
                      " are allowed, so that the names of its pods fit into 63",
           .holds = [](const Json& self, const Json&) { return job_name(self).size() <= kMaxJobNameLength; },
           .creation_only = true,
           .field_path = ".metadata.name"},
          {.cel = "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
           .message = "metadata.name {metadata.name} must be lower-case letters, digits and -, begin with a "
                      "letter and not end with -",
           .holds = [](const Json& self, const Json&) { return is_dns_label(job_name(self)); },
           .creation_only = true,
           .field_path = ".metadata.name"}};
}

}  // namespace

const Field& spec_schema() {
  static const Field field = make_spec();
  return field;
}

const std::vector<FieldRule>& object_rules() {
  static const std::vector<FieldRule> rules = make_object_rules();
  return rules;
}

}  // namespace evenkeel::contract
