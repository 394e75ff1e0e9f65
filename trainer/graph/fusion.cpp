#include "trainer/graph/fusion.h"

#include <algorithm>

namespace evenkeel::trainer {
namespace {

int readers_of(const Graph& graph, TensorId tensor) {
  int readers = 0;
  for (const Node& node : graph.nodes) readers += static_cast<int>(std::ranges::count(node.inputs, tensor));
  return readers;
}

// The kLinear that makes `tensor`, if it has no other reader and nothing fused yet.
Node* fusable_producer(Graph& graph, TensorId tensor) {
  if (readers_of(graph, tensor) != 1) return nullptr;
  for (Node& node : graph.nodes) {
    if (node.op == OpKind::kLinear && !node.fused_relu && node.outputs[0] == tensor) return &node;
  }
  return nullptr;
}

}  // namespace

Graph fuse_linear_relu(Graph graph) {
  for (std::size_t i = 0; i < graph.nodes.size();) {
    Node* linear =
        graph.nodes[i].op == OpKind::kRelu ? fusable_producer(graph, graph.nodes[i].inputs[0]) : nullptr;
    if (linear == nullptr) {
      ++i;
      continue;
    }
    // The linear takes over the activation's output, so whoever read that goes on reading it; the tensor in
    // between has neither maker nor reader any more and gets no memory.
    linear->fused_relu = true;
    linear->outputs = graph.nodes[i].outputs;
    graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return graph;
}

}  // namespace evenkeel::trainer
