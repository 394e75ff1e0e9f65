// Rewrites of a graph that save passes over memory and change no result. Pure.
#pragma once

#include "trainer/graph/graph.h"

namespace evenkeel::trainer {

// kLinear followed by a kRelu that alone reads it becomes one kLinear with fused_relu (before
// differentiate()).
Graph fuse_linear_relu(Graph graph);

}  // namespace evenkeel::trainer
