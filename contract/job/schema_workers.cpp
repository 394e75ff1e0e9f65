// spec.strategy and the groups of pods.
#include <set>

#include "contract/job/field_builder.h"
#include "contract/job/schema_parts.h"

namespace evenkeel::contract {
namespace {

constexpr double kMaxReplicas = 4096;

FieldRule no_tpu_rule() {
  return {
      .cel = "self != 'TPU'",
      .message =
          "type TPU is refused: there is no TPU back end, and a job never runs on something else in silence; "
          "use MultiWorkerMirrored",
      .holds = [](const Json& self, const Json&) { return self != "TPU"; }};
}

// As a rule and not as unbuilt values, so that TPU has its own reason.
FieldRule built_type_rule() {
  return {
      .cel = "self == 'MultiWorkerMirrored' || self == 'TPU'",
      .message = "type {} is not built in this version; use MultiWorkerMirrored",
      .holds = [](const Json& self, const Json&) { return self == "MultiWorkerMirrored" || self == "TPU"; }};
}

FieldRule min_max_rule() {
  return {
      .cel = "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
      .message =
          "minReplicas {minReplicas} is greater than maxReplicas {maxReplicas}; swap them or leave both out",
      .holds =
          [](const Json& self, const Json&) {
            return !self.contains("minReplicas") || !self.contains("maxReplicas") ||
                   self["minReplicas"] <= self["maxReplicas"];
          },
      .field_path = ".minReplicas"};
}

FieldRule replicas_in_range_rule() {
  return {
      .cel =
          "!has(self.replicas) || (!has(self.minReplicas) || self.minReplicas <= self.replicas) && "
          "(!has(self.maxReplicas) || self.replicas <= self.maxReplicas)",
      .message = "replicas {replicas} must lie between minReplicas and maxReplicas, where these are given",
      .holds =
          [](const Json& self, const Json&) {
            return (!self.contains("minReplicas") || self["minReplicas"] <= self["replicas"]) &&
                   (!self.contains("maxReplicas") || self["replicas"] <= self["maxReplicas"]);
          },
      .field_path = ".replicas"};
}

// minReplicas alone says whether a job is scalable, so that one field answers it.
FieldRule max_needs_min_rule() {
  return {.cel =
              "!has(self.maxReplicas) || has(self.minReplicas) || !has(self.replicas) || "
              "self.maxReplicas <= self.replicas",
          .message =
              "maxReplicas {maxReplicas} does not make a job scalable by itself; give minReplicas too, or "
              "leave it out",
          .holds =
              [](const Json& self, const Json&) {
                return !self.contains("maxReplicas") || self.contains("minReplicas") ||
                       self["maxReplicas"] <= self["replicas"];
              },
          .field_path = ".maxReplicas"};
}

FieldRule overrides_in_range_rule() {
  return {.cel =
              "!has(self.overrides) || !has(self.replicas) || self.overrides.all(o, !has(o.replicas) || "
              "o.replicas.all(r, r < (has(self.maxReplicas) ? self.maxReplicas : self.replicas)))",
          .message =
              "overrides: every index in replicas must be below maxReplicas, or without it below "
              "workers.replicas ({replicas}); the first replica is 0",
          .holds =
              [](const Json& self, const Json&) {
                const Json& most = self[self.contains("maxReplicas") ? "maxReplicas" : "replicas"];
                for (const Json& item : base::child(self, "overrides")) {
                  for (const Json& rank : base::child(item, "replicas")) {
                    if (rank >= most) return false;
                  }
                }
                return true;
              },
          .field_path = ".overrides"};
}

// Across overrides this is quadratic, which the API server's cost limit forbids; within one the list is a set
// there too.
FieldRule overrides_once_rule() {
  return {.cel = "",
          .message = "overrides: a replica appears twice; name each index once, in one override",
          .holds =
              [](const Json& self, const Json&) {
                std::set<std::int64_t> seen;
                for (const Json& item : base::child(self, "overrides")) {
                  for (const Json& rank : base::child(item, "replicas")) {
                    if (!seen.insert(rank.get<std::int64_t>()).second) return false;
                  }
                }
                return true;
              },
          .field_path = ".overrides"};
}

Field overrides_field() {
  Field item =
      object("", "One group of unequal workers.",
             {list("replicas", "Indexes of the workers that this override is for; the first worker is 0.",
                   integer("", "Index of a worker.", 0, kMaxReplicas - 1), 4096)
                  .items(1, 4096)
                  .required(),
              resources_field("these workers"), pod_options_field("these workers")});
  return list("overrides",
              "What is different for some workers, merged over the group's own values member by member; "
              "unequal machines are normal.",
              item, 64);
}

// Groups of later versions: named, counted zero, without anything that would be ignored.
Field empty_group(const char* name, const char* description) {
  return object(name, description,
                {integer("replicas", "How many pods of this kind.", 0, kMaxReplicas).defaults(0).only({0}),
                 FieldBuilder(FieldType::kOpen, "resources", "CPU, memory and devices of these pods.")
                     .foreign()
                     .only({Json::object()}),
                 FieldBuilder(FieldType::kOpen, "podOptions", "What these pods may ask of Kubernetes.")
                     .foreign()
                     .only({Json::object()})});
}

}  // namespace

Field strategy_field() {
  return group(
      "strategy", "How the replicas train together.",
      {choice("type",
              "MultiWorkerMirrored: every worker holds the whole model and gradients are averaged after each "
              "step.",
              {"OneDevice", "Mirrored", "MultiWorkerMirrored", "ParameterServer", "TPU"})
           .defaults("MultiWorkerMirrored")
           .rule(no_tpu_rule())
           .rule(built_type_rule()),
       choice("allReduce",
              "Algorithm that averages gradients; Auto takes the fastest one built for the job's size.",
              {"Auto", "Ring", "HalvingDoubling", "ReductionServer"})
           .defaults("Auto")
           .only({"Auto", "Ring"}),
       choice("gradientCompression", "Number format of gradients on the wire; None sends them in fp32.",
              {"None", "BF16", "FP16"})
           .defaults("None")
           .only({"None"}),
       number("bucketMiB",
              "Size of the pieces in which gradients are averaged, in MiB; 0 leaves it to the trainer.")
           .range(0, 1024)
           .defaults(0)});
}

Field workers_field() {
  return object(
             "workers", "The pods that train.",
             {integer("replicas",
                      "Number of worker pods, 1 to 4096; may change while the job is suspended, with "
                      "minReplicas at any time.",
                      1, kMaxReplicas)
                  .required(),
              integer("minReplicas",
                      "Fewest workers that a scalable job trains with; absent for a job of fixed size.", 1,
                      kMaxReplicas),
              integer("maxReplicas", "Most workers that a scalable job may be given; replicas where absent.",
                      1, kMaxReplicas),
              integer("devicesPerReplica", "Ranks in each worker pod, one per device.", 1, 64).defaults(1),
              choice("device", "What the ranks compute on.", {"cpu", "cuda"}).defaults("cpu").only({"cpu"}),
              text("image",
                   "Container image of the workers; empty takes the chart's trainer image for the device.")
                  .length(0, 512)
                  .pattern("^[^ \\t\\n]*$")
                  .defaults(""),
              list("command", "A user's own program, run instead of the trainer.",
                   text("", "One word.").length(0, 4096), 64)
                  .only({Json::array()}),
              list("args", "Arguments of a user's own program.", text("", "One word.").length(0, 4096), 256)
                  .only({Json::array()}),
              resources_field("each worker"), overrides_field(), pod_options_field("each worker")})
      .required()
      .rule(min_max_rule())
      .rule(replicas_in_range_rule())
      .rule(max_needs_min_rule())
      .rule(overrides_in_range_rule())
      .rule(overrides_once_rule());
}

Field coordinator_field() {
  return object(
      "coordinator",
      "The one small pod that hands out work, watches the workers and keeps the books; it needs no device.",
      {resources_field("the coordinator"), pod_options_field("the coordinator")});
}

Field reducers_field() {
  return empty_group("reducers", "Pods that only add gradients up, for allReduce: ReductionServer.");
}

Field parameter_servers_field() {
  return empty_group("parameterServers", "Pods that hold the weights, for the strategy ParameterServer.");
}

}  // namespace evenkeel::contract
