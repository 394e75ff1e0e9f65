// spec.training: how long, how fast, with what arithmetic.
#include <algorithm>

#include "contract/job/field_builder.h"
#include "contract/job/schema_parts.h"

namespace evenkeel::contract {
namespace {

FieldRule exactly_one_rule(const char* first, const char* second, const char* message) {
  return {.cel = std::string("has(self.") + first + ") != has(self." + second + ")",
          .message = message,
          .holds = [first, second](const Json& self, const Json&) {
            return self.contains(first) != self.contains(second);
          }};
}

Field batch_size_field() {
  return object("batchSize", "Samples of one step: global over all ranks, or perReplica for each rank.",
                {integer("global", "Samples of one step over all ranks together.", 1, 16777216),
                 integer("perReplica", "Samples of one step for each rank.", 1, 1048576)})
      .required()
      .rule(exactly_one_rule("global", "perReplica", "batchSize needs exactly one of global and perReplica"));
}

FieldRule optimizer_member_rule(const std::string& member, const std::vector<std::string>& types) {
  std::string quoted, words;
  for (const std::string& type : types) {
    quoted += (quoted.empty() ? "'" : ", '") + type + "'";
    words += (words.empty() ? "" : " and ") + type;
  }
  return {.cel = "!has(self." + member + ") || self.type in [" + quoted + "]",
          .message = member + " is for " + words + ", not for {type}",
          .holds =
              [member, types](const Json& self, const Json&) {
                return !self.contains(member) ||
                       std::find(types.begin(), types.end(), base::string_at(self, "type")) != types.end();
              },
          .field_path = "." + member};
}

FieldRule schedule_member_rule(const std::string& member, const std::string& schedule) {
  return {.cel = "!has(self." + member + ") || self.schedule == '" + schedule + "'",
          .message = member + " is for schedule " + schedule + ", not for {schedule}",
          .holds =
              [member, schedule](const Json& self, const Json&) {
                return !self.contains(member) || base::string_at(self, "schedule") == schedule;
              },
          .field_path = "." + member};
}

Field optimizer_field() {
  FieldRule rate{.cel = "self > 0.0",
                 .message = "learningRate {} must be greater than 0",
                 .holds = [](const Json& self, const Json&) { return self.get<double>() > 0; }};
  FieldRule momentum{.cel = "self < 1.0",
                     .message = "momentum {} must be below 1",
                     .holds = [](const Json& self, const Json&) { return self.get<double>() < 1; }};
  return group(
             "optimizer", "How weights follow gradients.",
             {choice("type", "Name of the optimizer.", {"sgd", "adam", "adamw", "lars", "lamb"})
                  .defaults("sgd")
                  .only({"sgd", "adam", "adamw", "lars"}),
              number("learningRate", "Size of a step, greater than 0.")
                  .range(0, 1e18)
                  .defaults(0.1)
                  .rule(rate),
              number("momentum", "Share of the last step that is kept, from 0 to below 1.")
                  .range(0, 1)
                  .defaults(0.9)
                  .rule(momentum),
              number("weightDecay", "Pull of the weights towards 0; biases are left alone.")
                  .range(0, 1e6)
                  .defaults(0),
              boolean("nesterov", "Whether sgd looks ahead along its momentum; false where absent."),
              number("beta1", "Memory of adam's mean; 0.9 where absent.").range(0, 0.999999),
              number("beta2", "Memory of adam's mean square; 0.999 where absent.").range(0, 0.999999),
              number("epsilon", "Added where adam and lars divide; where absent 1e-8 (Keras: 1e-7), lars 0.")
                  .range(0, 1),
              number("trustCoefficient", "Size of lars's steps relative to the weights; 0.001 where absent.")
                  .range(0, 1e6),
              choice("convention",
                     "Whose formulas for momentum, decay, adam and batch normalisation: PyTorch or Keras.",
                     {"PyTorch", "Keras"})
                  .defaults("PyTorch")})
      .rule(
          {.cel = "!has(self.epsilon) || self.type == 'lars' || self.epsilon > 0.0",
           .message = "epsilon {epsilon} must be greater than 0 for {type}, which divides by it at the start",
           .holds =
               [](const Json& self, const Json&) {
                 return !self.contains("epsilon") || base::string_at(self, "type") == "lars" ||
                        self["epsilon"].get<double>() > 0;
               },
           .field_path = ".epsilon"})
      .rule(optimizer_member_rule("nesterov", {"sgd"}))
      .rule(optimizer_member_rule("beta1", {"adam", "adamw"}))
      .rule(optimizer_member_rule("beta2", {"adam", "adamw"}))
      .rule(optimizer_member_rule("epsilon", {"adam", "adamw", "lars"}))
      .rule(optimizer_member_rule("trustCoefficient", {"lars"}));
}

Field learning_rate_field() {
  return group(
             "learningRate", "How the learning rate moves while training.",
             {choice("schedule", "Course of the learning rate over the whole training, after the warm-up.",
                     {"constant", "step", "cosine", "poly"})
                  .defaults("constant"),
              number("warmupEpochs", "Epochs over which the learning rate rises to its full size.")
                  .range(0, 1e6)
                  .defaults(0),
              list("milestones", "Epochs at which schedule step multiplies the rate by gamma.",
                   number("", "Epochs since the start.").range(0, 1e6), 64),
              number("gamma", "Factor of schedule step; 0.1 where absent.").range(0, 1),
              number("power", "Exponent of schedule poly; 1 where absent.").range(0, 100),
              number("final", "Share of the rate that cosine and poly end with; 0 where absent.").range(0, 1),
              choice(
                  "scaling",
                  "How the learning rate grows with the global batch; Auto is Linear for sgd and lars, Sqrt "
                  "for adam and adamw.",
                  {"Auto", "None", "Linear", "Sqrt"})
                  .defaults("Auto")})
      .rule({.cel = "!has(self.schedule) || self.schedule != 'step' || (has(self.milestones) && "
                    "size(self.milestones) > 0)",
             .message = "schedule step needs milestones, the epochs at which the rate falls",
             .holds =
                 [](const Json& self, const Json&) {
                   return base::string_at(self, "schedule") != "step" ||
                          !base::child(self, "milestones").empty();
                 },
             .field_path = ".milestones"})
      .rule(schedule_member_rule("milestones", "step"))
      .rule(schedule_member_rule("gamma", "step"))
      .rule(schedule_member_rule("power", "poly"))
      .rule({.cel = "!has(self.final) || self.schedule in ['cosine', 'poly']",
             .message = "final is for schedules cosine and poly, not for {schedule}",
             .holds =
                 [](const Json& self, const Json&) {
                   const std::string schedule = base::string_at(self, "schedule");
                   return !self.contains("final") || schedule == "cosine" || schedule == "poly";
                 },
             .field_path = ".final"});
}

Field batch_norm_field() {
  return group(
      "batchNorm", "How batch normalisation takes its statistics.",
      {choice("statistics",
              "Ghost: over fixed groups of samples, whatever rank they fall to. Local: over the batch of "
              "a rank. Sync: over the batch of all ranks.",
              {"Ghost", "Local", "Sync"})
           .defaults("Ghost"),
       integer("group",
               "Samples in a group of Ghost statistics; 16, or the per-rank batch if that is "
               "smaller, where absent.",
               1, 65536)});
}

// What a rank computes must not depend on how many samples it has.
FieldRule reproducible_rule() {
  return {.cel =
              "!has(self.reproducible) || !self.reproducible || (!has(self.lossNormalization) || "
              "self.lossNormalization != 'PerReplicaMean') && (!has(self.batchNorm) || "
              "!has(self.batchNorm.statistics) || self.batchNorm.statistics == 'Ghost')",
          .message =
              "reproducible needs batchNorm.statistics Ghost and another lossNormalization than PerReplicaMean: "
              "both others depend on how many samples a rank has",
          .holds =
              [](const Json& self, const Json&) {
                return !base::bool_at(self, "reproducible") ||
                       (base::string_at(self, "lossNormalization", "ActualGlobal") != "PerReplicaMean" &&
                        base::string_at(base::child(self, "batchNorm"), "statistics", "Ghost") == "Ghost");
              },
          .field_path = ".reproducible"};
}

}  // namespace

Field training_field() {
  return object(
             "training", "How the model is trained; may change while the job is suspended.",
             {integer("epochs", "Passes over the training data; give this or steps.", 1, 1000000),
              integer("steps", "Steps in all; give this or epochs.", 1), batch_size_field(),
              choice("scaling",
                     "What is kept when the number of ranks changes: Weak the batch of a rank, Strong the "
                     "global batch.",
                     {"Weak", "Strong"})
                  .defaults("Weak"),
              optimizer_field(), learning_rate_field(),
              choice("precision", "Number format of the arithmetic.", {"fp32", "tf32", "bf16", "fp16"})
                  .defaults("fp32")
                  .only({"fp32"}),
              batch_norm_field(),
              choice("lossNormalization",
                     "ActualGlobal divides by the samples that really took part, over all ranks.",
                     {"ActualGlobal", "ConstantGlobal", "PerReplicaMean"})
                  .defaults("ActualGlobal"),
              number("gradientClipNorm",
                     "Longest gradient that is let through; 0 lets every gradient through.")
                  .range(0, 1e9)
                  .defaults(0),
              number("labelSmoothing",
                     "Share of the label that is spread evenly over all classes while training.")
                  .range(0, 0.999)
                  .defaults(0),
              boolean("reproducible", "Whether weights are the same to the bit for any number of ranks.")
                  .defaults(false),
              integer("seed", "Seed of the first weights.").defaults(1),
              boolean(
                  "confusionMatrix",
                  "Whether an evaluation also counts which class was taken for which; in the log of rank 0.")
                  .defaults(false),
              integer("evaluateEvery", "Epochs between evaluations; 0 evaluates only at the end.", 0, 1000000)
                  .defaults(1)})
      .required()
      .rule(reproducible_rule())
      .rule(exactly_one_rule("epochs", "steps", "training needs exactly one of epochs and steps"));
}

}  // namespace evenkeel::contract
