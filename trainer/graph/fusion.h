// Rewrites of a graph that save passes over memory and change no result. Before differentiate(). Pure.
#pragma once

#include "trainer/graph/graph.h"

namespace evenkeel::trainer {

// A kAdd of which one input comes from a kBatchNorm that nobody else reads becomes part of it: the other
// input is its residual.
Graph fuse_batch_norm_add(Graph graph);

// A kRelu that alone reads the output of a kLinear, kConv2d, kBatchNorm or kAdd becomes part of it.
Graph fuse_relu(Graph graph);

}  // namespace evenkeel::trainer
