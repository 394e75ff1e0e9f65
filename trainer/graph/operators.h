// Adders of forward operators to a graph: infer the output's shape or say why not, naming layer and shapes
// (kInvalidInput). Each makes its output the graph's logits. Called by trainer/model. Pure.
#pragma once

#include <string>

#include "base/result.h"
#include "trainer/graph/graph.h"

namespace evenkeel::trainer {

base::Result<TensorId> add_input(Graph& graph, Shape sample_shape);
base::Result<TensorId> add_flatten(Graph& graph, const std::string& layer, TensorId x);
// sample_shape: without the batch; as many elements as a sample of x.
base::Result<TensorId> add_reshape(Graph& graph, const std::string& layer, TensorId x,
                                   const Shape& sample_shape);
base::Result<TensorId> add_relu(Graph& graph, const std::string& layer, TensorId x);
base::Result<TensorId> add_sum(Graph& graph, const std::string& layer, TensorId a, TensorId b);
// rate in [0, 1).
base::Result<TensorId> add_dropout(Graph& graph, const std::string& layer, TensorId x, double rate);

enum class Bias { kNone, kZeros };
base::Result<TensorId> add_linear(Graph& graph, const std::string& layer, TensorId x, std::int64_t units,
                                  Bias bias, InitializerKind kernel_initializer);

// How a window lies on an image. kExplicit: Window's pads as they are; kSame: so many that only strides make
// the image smaller, an odd one at the bottom and right.
enum class Padding { kExplicit, kSame };
struct ConvOptions {
  std::int64_t filters = 1;
  Window window;
  Padding padding = Padding::kExplicit;
  std::int64_t groups = 1;
  Bias bias = Bias::kNone;
  InitializerKind initializer = InitializerKind::kHeNormal;
};
base::Result<TensorId> add_conv2d(Graph& graph, const std::string& layer, TensorId x,
                                  const ConvOptions& options);
enum class PoolKind { kMax, kAvg };
base::Result<TensorId> add_pool(Graph& graph, const std::string& layer, TensorId x, PoolKind kind,
                                Window window, Padding padding);
base::Result<TensorId> add_global_avg_pool(Graph& graph, const std::string& layer, TensorId x);
// Every stride-th point, channels of zeros added on both sides up to `filters` (an odd one behind).
base::Result<TensorId> add_shortcut(Graph& graph, const std::string& layer, TensorId x, std::int64_t filters,
                                    std::int64_t stride_h, std::int64_t stride_w);

// Numbers of one convention: PyTorch {0.1, 1e-5, true}, Keras {0.01, 1e-3, false}.
struct BatchNormOptions {
  double momentum = 0.1;  // share of the new in the running statistics
  double epsilon = 1e-5;
  bool unbiased = true;
};
base::Result<TensorId> add_batch_norm(Graph& graph, const std::string& layer, TensorId x,
                                      const BatchNormOptions& options);

}  // namespace evenkeel::trainer
