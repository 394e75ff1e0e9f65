// Adds the loss and, for training, the whole backward pass to a forward graph. Each operator has one
// emit_backward; there is no tape at run time. Pure; called by plan.h's compile_plan.
#pragma once

#include "base/result.h"
#include "trainer/graph/graph.h"

namespace evenkeel::trainer {

// What a plan is for: training = forward, loss, backward; evaluation = forward and loss, with dropout left
// out and batch normalisation by its running statistics.
enum class PlanMode { kTraining, kEvaluation };

// The graph with the loss over graph.logits and, for kTraining, one kParameterGradient tensor for each
// parameter. The loss is seeded with the SUM over samples: gradients are sums, never means. Where several
// operators read one tensor, their gradients meet in a kAdd.
base::Result<Graph> differentiate(Graph graph, PlanMode mode, double label_smoothing = 0);

}  // namespace evenkeel::trainer
