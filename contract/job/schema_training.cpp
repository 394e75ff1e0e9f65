// spec.training: how long, how fast, with what arithmetic.
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
           .only({"sgd"}),
       number("learningRate", "Size of a step, greater than 0.").range(0, 1e18).defaults(0.1).rule(rate),
       number("momentum", "Share of the last step that is kept, from 0 to below 1.")
           .range(0, 1)
           .defaults(0.9)
           .rule(momentum),
       number("weightDecay", "Pull of the weights towards 0; biases are left alone.")
           .range(0, 1e6)
           .defaults(0),
       choice("convention", "Whose formulas for momentum and decay: PyTorch or Keras.", {"PyTorch", "Keras"})
           .defaults("PyTorch")});
}

Field learning_rate_field() {
  return group(
      "learningRate", "How the learning rate moves while training.",
      {choice("schedule", "Course of the learning rate over the whole training.", {"constant", "cosine"})
           .defaults("constant")
           .only({"constant"}),
       number("warmupEpochs", "Epochs over which the learning rate rises to its full size.")
           .range(0, 1e6)
           .defaults(0)
           .only({0}),
       choice("scaling", "How the learning rate grows with the global batch; Auto is Linear for sgd.",
              {"Auto", "None", "Linear", "Sqrt"})
           .defaults("Auto")});
}

Field batch_norm_field() {
  return group("batchNorm", "How batch normalisation takes its statistics.",
               {choice("statistics", "Ghost: over fixed groups of samples, whatever rank they fall to.",
                       {"Ghost", "Local", "Sync"})
                    .defaults("Ghost")
                    .only({"Ghost"}),
                integer("group",
                        "Samples in a group of Ghost statistics; 16, or the per-rank batch if that is "
                        "smaller, where absent.",
                        1, 65536)
                    .only({16})});
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
                  .defaults("ActualGlobal")
                  .only({"ActualGlobal"}),
              number("gradientClipNorm",
                     "Longest gradient that is let through; 0 lets every gradient through.")
                  .range(0, 1e9)
                  .defaults(0)
                  .only({0}),
              boolean("reproducible", "Whether weights are the same to the bit for any number of ranks.")
                  .defaults(false)
                  .only({false}),
              integer("seed", "Seed of the first weights.").defaults(1),
              integer("evaluateEvery", "Epochs between evaluations; 0 evaluates only at the end.", 0, 1000000)
                  .defaults(1)})
      .required()
      .rule(exactly_one_rule("epochs", "steps", "training needs exactly one of epochs and steps"));
}

}  // namespace evenkeel::contract
