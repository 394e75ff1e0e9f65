// The fields about running a job: balance, restarts, deadlines, checkpoints, metrics.
#include "contract/job/field_builder.h"
#include "contract/job/schema_parts.h"
#include "contract/labels.h"

namespace evenkeel::contract {
namespace {

Field balance_field() {
  FieldRule above_zero{.cel = "self > 0.0",
                       .message = "stragglerThreshold {} must be greater than 0",
                       .holds = [](const Json& self, const Json&) { return self.get<double>() > 0; }};
  return group(
      "balance", "What is done about unequal ranks.",
      {choice("mode",
              "Rebalance gives slow ranks less work; Observe only names them; Off measures without naming "
              "them.",
              {"Off", "Observe", "Rebalance"})
           .defaults("Rebalance"),
       number("stragglerThreshold",
              "Relative performance below which a rank counts as a straggler; 1 is the speed of the others.")
           .range(0, 1)
           .defaults(0.75)
           .rule(above_zero)});
}

Field tune_field() {
  return group(
      "tune", "What is done to make N ranks N times faster.",
      {choice("mode",
              "Advise prices every remedy; Apply also takes a larger batch within maxGlobalBatch and keeps it if it pays.",
              {"Off", "Advise", "Apply"})
           .defaults("Advise"),
       integer("maxGlobalBatch", "Largest global batch that a remedy may choose; 0 leaves the batch alone.",
               0, 16777216)
           .defaults(0)});
}

Field restart_rules_field() {
  FieldRule one_reason{
      .cel =
          "(has(self.onExitCodes) && size(self.onExitCodes) > 0) != (has(self.onDisruption) && "
          "self.onDisruption)",
      .message =
          "a rule of restart.rules needs exactly one of onExitCodes (with a code) and onDisruption: true",
      .holds = [](const Json& self, const Json&) {
        return base::child(self, "onExitCodes").empty() == base::bool_at(self, "onDisruption");
      }};
  Field item = object(
      "", "One rule.",
      {list("onExitCodes", "Exit codes of the trainer that this rule is for, 1 to 255.",
            integer("", "An exit code.", 1, 255), 255),
       boolean("onDisruption", "Whether this rule is for preemption, eviction, node loss and deleted pods."),
       choice("action",
              "Restart counts towards maxRestarts, RestartIgnoringLimit does not, FailJob ends the job.",
              {"Restart", "RestartIgnoringLimit", "FailJob"})
           .required()});
  item.rules.push_back(one_reason);
  Json defaults = Json::array({{{"onExitCodes", {64, 65, 69, 76, 78}}, {"action", "FailJob"}},
                               {{"onDisruption", true}, {"action", "RestartIgnoringLimit"}}});
  return list("rules",
              "What follows a failure; the first rule that matches wins, and without one it is Restart.",
              item, 32)
      .defaults(defaults);
}

Field restart_field() {
  return group(
      "restart", "What follows a failure.",
      {choice("scope",
              "Worker replaces the failed pod alone while the others go on; Job restarts all pods from the "
              "newest checkpoint.",
              {"Worker", "Job"})
           .defaults("Worker"),
       integer("maxRestarts",
               "Incidents after which the job fails; one incident is one restart, however many pods it takes "
               "down.",
               0, 1000000)
           .defaults(10),
       restart_rules_field(),
       integer("failureDetectionSeconds",
               "Seconds of silence after which a rank counts as lost; a reset connection or a dead pod is "
               "known at once.",
               1, 3600)
           .defaults(10),
       integer("terminatingTimeoutSeconds",
               "Seconds after which a pod that is stuck while terminating is deleted by force; 0 never does.",
               0, 86400)
           .defaults(0)});
}

Field checkpoint_field() {
  return object(
      "checkpoint", "Where and when the state of the training is saved; without this field none is.",
      {text("path", "Folder of the checkpoints inside the pod, an absolute path.")
           .length(2, 512)
           .pattern("^/[^:]+$")
           .required()
           .rule(plain_path_rule("path")),
       volume_source_field("Where checkpoints are kept, mounted at path; with several workers it must be "
                           "shared by all of them."),
       integer("everySteps", "Steps between two checkpoints.", 1).defaults(500),
       integer("keep", "How many of the newest checkpoints are kept.", 1, 1000).defaults(3),
       boolean("onSuspend", "Whether a checkpoint is written when the job is suspended.").defaults(true)});
}

Field metrics_field() {
  FieldRule free_port{
      .cel = "self != 9401 && self != 9402",
      .message = "port {} is used by the trainer itself; choose another",
      .holds = [](const Json& self, const Json&) { return self != kControlPort && self != kDataPort; }};
  return group(
      "metrics", "The /metrics page of every pod.",
      {integer("port", "Port of the page, 1024 to 65535.", 1024, 65535).defaults(9400).rule(free_port),
       integer("linger", "Seconds that a finished pod still serves its page, for a last scrape.", 0, 3600)
           .defaults(0)});
}

Field scheduling_field() {
  return group(
      "scheduling", "How the pods get their nodes.",
      {choice("gang", "Scheduler that starts all pods together or none.", {"None", "Volcano", "Coscheduling"})
           .defaults("None")
           .only({"None"}),
       text("queue", "Queue that admits the job; empty starts at once.").defaults("").only({""}),
       text("priorityClassName", "Priority class of all pods; empty takes the cluster's default.")
           .pattern("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
           .defaults("")});
}

}  // namespace

std::vector<Field> operations_fields() {
  return {
      balance_field(),
      tune_field(),
      restart_field(),
      group("deadlines", "Limits of time; the clocks stop while the job is suspended.",
            {integer("startSeconds", "Seconds from creation until all ranks must have joined; 0 is no limit.")
                 .defaults(0),
             integer("activeSeconds", "Seconds that the job may be active in all; 0 is no limit.")
                 .defaults(0)}),
      group("cleanup", "What is left when the job has ended.",
            {choice("podPolicy", "Which pods are deleted: those still Running, All or None.",
                    {"Running", "All", "None"})
                 .defaults("Running"),
             integer("ttlSecondsAfterFinished",
                     "Seconds after which the finished job deletes itself; null or absent keeps it.")
                 .nullable()}),
      scheduling_field(),
      checkpoint_field(),
      group("preflight", "A short test of nodes and network before the first step.",
            {choice("mode", "Auto tests once for each attempt of the job; Off does not.", {"Auto", "Off"})
                 .defaults("Auto")}),
      metrics_field()};
}

}  // namespace evenkeel::contract
