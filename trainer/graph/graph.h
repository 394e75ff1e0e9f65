// The intermediate form between a model and a plan: tensors with shapes, operators (nodes) in topological
// order. Built by trainer/model through operators.h, grown by autodiff.h, rewritten by fusion.h, compiled by
// plan.h. The batch is symbolic here, so one graph serves every local batch size. Values; no thread rules.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace evenkeel::trainer {

using TensorId = int;
inline constexpr TensorId kNoTensor = -1;

// The batch, where a shape has it; always the first dimension. Printed as N.
inline constexpr std::int64_t kBatchDim = -1;
// Groups of samples that share batch statistics; follows from the batch. Printed as G.
inline constexpr std::int64_t kGroupDim = -2;
// Images are (N, height, width, channels) everywhere.
using Shape = std::vector<std::int64_t>;

std::string to_text(const Shape& shape);  // "(N, 28, 28, 1)"
// Product of the dimensions with the batch (and groups) filled in; kInvalidInput beyond 2^62.
base::Result<std::int64_t> element_count(const Shape& shape, std::int64_t batch, std::int64_t groups = 1);

enum class TensorRole {
  kInput,              // the features; in the caller's memory
  kParameter,          // arena 1
  kRunningStatistic,   // arena 1, behind the parameters: learned by averaging, not by gradients
  kActivation,         // made and used up inside a step
  kParameterGradient,  // arena 3
  kStatisticSums,      // arena 3, behind the gradients: what the running statistics move towards
};

// How a parameter starts; the numbers are in trainer/model/initializer.h.
enum class InitializerKind { kZeros, kOnes, kHeNormal, kHeUniform, kGlorotUniform };

struct Tensor {
  std::string name;  // "dense_1.kernel"; a gradient has the suffix ":grad"
  Shape shape;
  TensorRole role = TensorRole::kActivation;
  // Parameters and running statistics only.
  InitializerKind initializer = InitializerKind::kZeros;
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
  bool decays = false;  // weight decay applies: kernels yes, biases and batch normalisation no
  // Parameter gradients only: whose.
  TensorId parameter = kNoTensor;
};

// Operators. Shapes of the tensors in the comments: L = units in, M = units out, K = classes; images x are
// (N, H, W, C), y (N, P, Q, D). [..] may be absent.
enum class OpKind {
  kFlatten,        // x (N, ...) -> y (N, L); a view, moves nothing
  kReshape,        // x (N, ...) -> y (N, ...); a view
  kLinear,         // x (N, L), kernel (L, M)[, bias (M)] -> y (N, M)
  kConv2d,         // x, kernel (h, w, C / groups, D)[, bias (D)] -> y
  kRelu,           // x (N, ...) -> y
  kAdd,            // a, b -> y = a + b, all of one shape
  kMaxPool,        // x -> y (N, P, Q, C)[, index: where each maximum was, as int32]
  kAvgPool,        // x -> y; the mean of the points inside the image
  kGlobalAvgPool,  // x -> y (N, C)
  kDropout,        // x -> y = x * kept / (1 - rate)
  kShortcut,  // x -> y (N, ceil(H / stride), ceil(W / stride), D): points left out, channels of zeros added
  // x (N, ..., C), gamma (C), beta (C)[, running mean (C), running variance (C)][, residual like x] -> y. In
  // a training graph without the running statistics and with outputs mean (G, C), inverse deviation (G, C)
  // and sums (2C + 2): of n * mean, of n * variance, and the two counts n.
  kBatchNorm,
  kBatchNormInference,     // the same with running statistics, as y = x * scale + shift
  kSoftmaxCrossEntropy,    // z (N, K) -> dz (N, K) = softmax - label (training), or nothing; sums of loss,
                           // correct
  kReluBackward,           // y (N, ...), dy -> dx = dy where y > 0
  kLinearBackwardData,     // dy (N, M), kernel (L, M) -> dx (N, L)
  kLinearBackwardWeights,  // x (N, L), dy (N, M) -> dkernel (L, M)[, dbias (M)]
  kConv2dBackwardData,     // dy, kernel -> dx
  kConv2dBackwardWeights,  // x, dy -> dkernel[, dbias]
  kReshapeBackward,        // dy -> dx (N, ...); a view
  kMaxPoolBackward,        // index, dy -> dx
  kAvgPoolBackward,        // dy -> dx
  kGlobalAvgPoolBackward,  // dy (N, C) -> dx
  kDropoutBackward,        // dy -> dx, with the mask of the forward pass
  kShortcutBackward,       // dy -> dx
  // x, gamma, mean, inverse deviation, dy[, y where relu] -> dx, dgamma, dbeta[, dresidual where relu and
  // residual]
  kBatchNormBackward,
};
inline constexpr int kOpKindCount = static_cast<int>(OpKind::kBatchNormBackward) + 1;
const char* op_name(OpKind op);
enum class Phase { kForward, kBackward };

// A window that moves over an image: convolutions and pools.
struct Window {
  std::int64_t height = 1, width = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;  // distance of neighbouring points; 1 = adjacent

  bool operator==(const Window&) const = default;
};

// What an operator needs beside its tensors; each uses a few of them.
struct OpAttributes {
  bool relu = false;      // y = max(0, .) as the last part of the operator
  bool residual = false;  // kBatchNorm*: the last input is added before the ReLU
  Window window;
  std::int64_t groups = 1;     // kConv2d*
  double rate = 0;             // kDropout*: share left out
  int stream = 0;              // kDropout*: which dropout of the model, for its random numbers
  double epsilon = 0;          // kBatchNorm*
  double momentum = 0;         // kBatchNorm: share of the new in the running statistics
  bool unbiased = true;        // kBatchNorm: running variance by n / (n - 1)
  double label_smoothing = 0;  // kSoftmaxCrossEntropy

  bool operator==(const OpAttributes&) const = default;
};

struct Node {
  OpKind op = OpKind::kFlatten;
  std::string layer;  // the model's layer it came from
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  Phase phase = Phase::kForward;
  OpAttributes attributes;
};

struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;  // every node after those that make its inputs
  TensorId input = kNoTensor;
  TensorId logits = kNoTensor;  // what the loss is computed of

  const Tensor& at(TensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
  Tensor& at(TensorId id) { return tensors[static_cast<std::size_t>(id)]; }
  TensorId add_tensor(Tensor tensor);
  std::vector<TensorId> with_role(TensorRole role) const;
  // Parameters in the order of the model.
  std::vector<TensorId> parameters() const { return with_role(TensorRole::kParameter); }
  std::int64_t parameter_count() const;
  // How many inputs of nodes a tensor is; the loss reads the logits and is not counted.
  int readers_of(TensorId tensor) const;
};

// One line for each node, for people: what every pass can print.
std::string to_text(const Graph& graph);

}  // namespace evenkeel::trainer
