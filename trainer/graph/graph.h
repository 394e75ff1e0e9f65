// The intermediate form between a model and a plan: tensors with shapes, operators (nodes) in topological
// order. Built by trainer/model, grown by autodiff.h, rewritten by fusion.h, compiled by plan.h. The batch is
// symbolic here, so one graph serves every local batch size. Values; no thread rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace evenkeel::trainer {

using TensorId = int;
inline constexpr TensorId kNoTensor = -1;

// The batch, where a shape has it; always the first dimension. Printed as N.
inline constexpr std::int64_t kBatchDim = -1;
using Shape = std::vector<std::int64_t>;

std::string to_text(const Shape& shape);  // "(N, 28, 28)"
// Product of the dimensions with the batch filled in; kInvalidInput beyond 2^62.
base::Result<std::int64_t> element_count(const Shape& shape, std::int64_t batch);

enum class TensorRole {
  kInput,              // the features; in the caller's memory
  kParameter,          // arena 1
  kActivation,         // made and used up inside a step
  kParameterGradient,  // arena 3
};

// How a parameter starts; the numbers are in trainer/model/initializer.h.
enum class InitializerKind { kZeros, kHeNormal, kHeUniform, kGlorotUniform };

struct Tensor {
  std::string name;  // "dense_1.kernel"; a gradient has the suffix ":grad"
  Shape shape;
  TensorRole role = TensorRole::kActivation;
  // Parameters only.
  InitializerKind initializer = InitializerKind::kZeros;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
  bool decays = false;  // weight decay applies: kernels yes, biases no
  // Parameter gradients only: whose.
  TensorId parameter = kNoTensor;
};

// Operators. Shapes of the tensors in the comments; L = units in, M = units out, K = classes.
enum class OpKind {
  kFlatten,                // x (N, ...) -> y (N, L); a view, moves nothing
  kLinear,                 // x (N, L), kernel (L, M)[, bias (M)] -> y (N, M); with fused_relu y = max(0, .)
  kRelu,                   // x (N, ...) -> y
  kSoftmaxCrossEntropy,    // z (N, K) -> dz (N, K) = softmax - onehot (training), or nothing; sums of loss,
                           // correct
  kReluBackward,           // y (N, ...), dy -> dx = dy where y > 0
  kLinearBackwardData,     // dy (N, M), kernel (L, M) -> dx (N, L)
  kLinearBackwardWeights,  // x (N, L), dy (N, M) -> dkernel (L, M)[, dbias (M)]
  kReshapeBackward,        // dy (N, L) -> dx (N, ...); a view
};
const char* op_name(OpKind op);
enum class Phase { kForward, kBackward };

struct Node {
  OpKind op = OpKind::kFlatten;
  std::string layer;  // the model's layer it came from
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  Phase phase = Phase::kForward;
  bool fused_relu = false;  // kLinear only
};

struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;  // every node after those that make its inputs
  TensorId input = kNoTensor;
  TensorId logits = kNoTensor;  // what the loss is computed of

  const Tensor& at(TensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
  TensorId add_tensor(Tensor tensor);
  // Parameters in the order of the model.
  std::vector<TensorId> parameters() const;
  std::int64_t parameter_count() const;
};

// Adders of forward operators: infer the output's shape or say why not, naming layer and shapes
// (kInvalidInput).
base::Result<TensorId> add_input(Graph& graph, Shape sample_shape);
base::Result<TensorId> add_flatten(Graph& graph, const std::string& layer, TensorId x);
enum class Bias { kNone, kZeros };
base::Result<TensorId> add_linear(Graph& graph, const std::string& layer, TensorId x, std::int64_t units,
                                  Bias bias, InitializerKind kernel_initializer);
base::Result<TensorId> add_relu(Graph& graph, const std::string& layer, TensorId x);

}  // namespace evenkeel::trainer
