#include "trainer/graph/fusion.h"

#include <algorithm>

namespace evenkeel::trainer {
namespace {

using NodeIterator = std::vector<Node>::iterator;

NodeIterator maker_of(Graph& graph, TensorId tensor) {
  return std::ranges::find_if(graph.nodes, [&](const Node& node) { return node.outputs[0] == tensor; });
}

bool takes_relu(const Node& node) {
  const bool kind = node.op == OpKind::kLinear || node.op == OpKind::kConv2d ||
                    node.op == OpKind::kBatchNorm || node.op == OpKind::kAdd;
  return kind && !node.attributes.relu;
}

// A batch normalisation that only `sum` reads, or the end.
NodeIterator lone_batch_norm(Graph& graph, TensorId tensor) {
  if (tensor == graph.logits || graph.readers_of(tensor) != 1) return graph.nodes.end();
  const NodeIterator maker = maker_of(graph, tensor);
  if (maker == graph.nodes.end() || maker->op != OpKind::kBatchNorm) return graph.nodes.end();
  return maker->attributes.relu || maker->attributes.residual ? graph.nodes.end() : maker;
}

}  // namespace

Graph fuse_batch_norm_add(Graph graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op != OpKind::kAdd) continue;
    for (const int side : {0, 1}) {
      const Node sum = graph.nodes[i];
      const NodeIterator norm = lone_batch_norm(graph, sum.inputs[static_cast<std::size_t>(side)]);
      if (norm == graph.nodes.end()) continue;
      // It moves to the place of the sum, where the residual exists for certain.
      Node fused = *norm;
      fused.inputs.push_back(sum.inputs[static_cast<std::size_t>(1 - side)]);
      fused.outputs = sum.outputs;
      fused.attributes.residual = true;
      graph.nodes[i] = std::move(fused);
      graph.nodes.erase(norm);
      --i;
      break;
    }
  }
  return graph;
}

Graph fuse_relu(Graph graph) {
  for (std::size_t i = 0; i < graph.nodes.size();) {
    const Node relu = graph.nodes[i];
    NodeIterator maker = graph.nodes.end();
    if (relu.op == OpKind::kRelu && graph.readers_of(relu.inputs[0]) == 1)
      maker = maker_of(graph, relu.inputs[0]);
    if (maker == graph.nodes.end() || !takes_relu(*maker)) {
      ++i;
      continue;
    }
    // The maker takes over the activation's output, so whoever read that goes on reading it; the tensor in
    // between has neither maker nor reader any more and gets no memory.
    maker->attributes.relu = true;
    maker->outputs[0] = relu.outputs[0];
    graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return graph;
}

}  // namespace evenkeel::trainer
