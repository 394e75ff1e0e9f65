#include "trainer/backend/cpu/reference.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/philox.h"

namespace evenkeel::trainer {
namespace {

using Values = std::vector<double>;
using Index = std::int64_t;

class Interpreter {
 public:
  Interpreter(const Plan& plan, const ReferenceInput& input) : plan_(plan), input_(input) {
    for (const PlanTensor& t : plan.tensors) result_.tensors.emplace_back(t.size_bytes / sizeof(float), 0.0);
  }

  Values& at(TensorId id) { return result_.tensors[static_cast<std::size_t>(id)]; }
  ReferenceResult take() { return std::move(result_); }

  void run(const PlanStep& step) {
    step_ = &step;
    switch (step.op) {
      case OpKind::kFlatten:
      case OpKind::kReshape:
      case OpKind::kReshapeBackward:
        out(0) = in(0);
        return;
      case OpKind::kLinear:
        return linear();
      case OpKind::kLinearBackwardData:
        return linear_backward_data();
      case OpKind::kLinearBackwardWeights:
        return linear_backward_weights();
      case OpKind::kConv2d:
        return convolution();
      case OpKind::kConv2dBackwardData:
        return convolution_backward_data();
      case OpKind::kConv2dBackwardWeights:
        return convolution_backward_weights();
      case OpKind::kRelu:
        for (std::size_t i = 0; i < in(0).size(); ++i) out(0)[i] = std::max(0.0, in(0)[i]);
        return;
      case OpKind::kReluBackward:
        for (std::size_t i = 0; i < in(0).size(); ++i) out(0)[i] = in(0)[i] > 0 ? in(1)[i] : 0.0;
        return;
      case OpKind::kAdd:
        for (std::size_t i = 0; i < in(0).size(); ++i) out(0)[i] = activated(in(0)[i] + in(1)[i]);
        return;
      case OpKind::kDropout:
      case OpKind::kDropoutBackward:
        return dropout();
      case OpKind::kShortcut:
      case OpKind::kShortcutBackward:
        return shortcut(step.op == OpKind::kShortcutBackward);
      case OpKind::kMaxPool:
        return max_pool();
      case OpKind::kMaxPoolBackward:
        return max_pool_backward();
      case OpKind::kAvgPool:
      case OpKind::kAvgPoolBackward:
        return avg_pool(step.op == OpKind::kAvgPoolBackward);
      case OpKind::kGlobalAvgPool:
      case OpKind::kGlobalAvgPoolBackward:
        return global_avg_pool(step.op == OpKind::kGlobalAvgPoolBackward);
      case OpKind::kBatchNorm:
        return batch_norm();
      case OpKind::kBatchNormInference:
        return batch_norm_inference();
      case OpKind::kBatchNormBackward:
        return batch_norm_backward();
      case OpKind::kSoftmaxCrossEntropy:
        return loss();
    }
  }

 private:
  Values& in(std::size_t i) { return at(step_->inputs[i]); }
  Values& out(std::size_t i) { return at(step_->outputs[i]); }
  const Shape& in_shape(std::size_t i) const {
    return plan_.tensors[static_cast<std::size_t>(step_->inputs[i])].shape;
  }
  const Shape& out_shape(std::size_t i) const {
    return plan_.tensors[static_cast<std::size_t>(step_->outputs[i])].shape;
  }
  double activated(double y) const { return step_->attributes.relu ? std::max(0.0, y) : y; }
  static std::size_t place(const Shape& s, Index n, Index h, Index w, Index c) {
    return static_cast<std::size_t>(((n * s[1] + h) * s[2] + w) * s[3] + c);
  }

  void linear() {
    const Index rows = in_shape(0)[0], width = in_shape(0)[1], units = out_shape(0)[1];
    for (Index n = 0; n < rows; ++n) {
      for (Index u = 0; u < units; ++u) {
        double sum = step_->inputs.size() > 2 ? in(2)[static_cast<std::size_t>(u)] : 0.0;
        for (Index i = 0; i < width; ++i)
          sum +=
              in(0)[static_cast<std::size_t>(n * width + i)] * in(1)[static_cast<std::size_t>(i * units + u)];
        out(0)[static_cast<std::size_t>(n * units + u)] = activated(sum);
      }
    }
  }

  void linear_backward_data() {
    const Index rows = in_shape(0)[0], units = in_shape(0)[1], width = out_shape(0)[1];
    for (Index n = 0; n < rows; ++n) {
      for (Index i = 0; i < width; ++i) {
        double sum = 0;
        for (Index u = 0; u < units; ++u)
          sum +=
              in(0)[static_cast<std::size_t>(n * units + u)] * in(1)[static_cast<std::size_t>(i * units + u)];
        out(0)[static_cast<std::size_t>(n * width + i)] = sum;
      }
    }
  }

  void linear_backward_weights() {
    const Index rows = in_shape(0)[0], width = in_shape(0)[1], units = in_shape(1)[1];
    for (Index n = 0; n < rows; ++n) {
      for (Index u = 0; u < units; ++u) {
        const double dy = in(1)[static_cast<std::size_t>(n * units + u)];
        for (Index i = 0; i < width; ++i)
          out(0)[static_cast<std::size_t>(i * units + u)] +=
              in(0)[static_cast<std::size_t>(n * width + i)] * dy;
        if (step_->outputs.size() > 1) out(1)[static_cast<std::size_t>(u)] += dy;
      }
    }
  }

  // Every product of a convolution once: body(place in x, place in the kernel, place in y).
  template <class Body>
  void for_each_product(const Shape& x, const Shape& k, const Shape& y, const Body& body) {
    const Window& w = step_->attributes.window;
    const Index per_group = k[3] / step_->attributes.groups;
    for (Index n = 0; n < y[0]; ++n) {
      for (Index p = 0; p < y[1]; ++p) {
        for (Index q = 0; q < y[2]; ++q) {
          for (Index d = 0; d < y[3]; ++d) {
            for (Index i = 0; i < k[0]; ++i) {
              for (Index j = 0; j < k[1]; ++j) {
                const Index h = p * w.stride_h - w.pad_top + i * w.dilation_h;
                const Index v = q * w.stride_w - w.pad_left + j * w.dilation_w;
                if (h < 0 || h >= x[1] || v < 0 || v >= x[2]) continue;
                for (Index c = 0; c < k[2]; ++c)
                  body(place(x, n, h, v, d / per_group * k[2] + c), place(k, i, j, c, d),
                       place(y, n, p, q, d));
              }
            }
          }
        }
      }
    }
  }

  void convolution() {
    Values& y = out(0);
    for (std::size_t i = 0; i < y.size() && step_->inputs.size() > 2; ++i) y[i] = in(2)[i % in(2).size()];
    for_each_product(in_shape(0), in_shape(1), out_shape(0),
                     [&](std::size_t x, std::size_t k, std::size_t to) { y[to] += in(0)[x] * in(1)[k]; });
    for (double& value : y) value = activated(value);
  }

  void convolution_backward_data() {
    for_each_product(out_shape(0), in_shape(1), in_shape(0),
                     [&](std::size_t x, std::size_t k, std::size_t y) { out(0)[x] += in(0)[y] * in(1)[k]; });
  }

  void convolution_backward_weights() {
    for_each_product(in_shape(0), out_shape(0), in_shape(1),
                     [&](std::size_t x, std::size_t k, std::size_t y) { out(0)[k] += in(0)[x] * in(1)[y]; });
    for (std::size_t i = 0; i < in(1).size() && step_->outputs.size() > 1; ++i)
      out(1)[i % out(1).size()] += in(1)[i];
  }

  void dropout() {
    const auto features = static_cast<Index>(in(0).size()) / std::max<Index>(plan_.batch, 1);
    const double rate = step_->attributes.rate;
    for (Index n = 0; n < plan_.batch; ++n) {
      const auto id =
          static_cast<std::uint64_t>(input_.ids.empty() ? n : input_.ids[static_cast<std::size_t>(n)]);
      const std::uint64_t key = base::mix64(base::mix64(base::mix64(input_.seed) + 3) + id);
      for (Index i = 0; i < features; ++i) {
        const auto words = base::philox(
            {static_cast<std::uint32_t>(i / 4), static_cast<std::uint32_t>(step_->attributes.stream),
             static_cast<std::uint32_t>(input_.epoch), static_cast<std::uint32_t>(input_.epoch >> 32)},
            {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
        const auto to = static_cast<std::size_t>(n * features + i);
        const bool kept = words[static_cast<std::size_t>(i % 4)] / 4294967296.0 >= rate;
        out(0)[to] = kept ? in(0)[to] / (1 - rate) : 0.0;
      }
    }
  }

  void shortcut(bool backward) {
    const Shape &large = backward ? out_shape(0) : in_shape(0),
                &small = backward ? in_shape(0) : out_shape(0);
    const Index first = (small[3] - large[3]) / 2;
    for (Index n = 0; n < small[0]; ++n) {
      for (Index p = 0; p < small[1]; ++p) {
        for (Index q = 0; q < small[2]; ++q) {
          for (Index c = 0; c < large[3]; ++c) {
            const std::size_t a = place(large, n, p * step_->attributes.window.stride_h,
                                        q * step_->attributes.window.stride_w, c);
            const std::size_t b = place(small, n, p, q, first + c);
            out(0)[backward ? a : b] = in(0)[backward ? b : a];
          }
        }
      }
    }
  }

  // The points of an image under the window at (p, q).
  std::vector<std::size_t> under_window(const Shape& x, Index n, Index p, Index q, Index c) const {
    const Window& w = step_->attributes.window;
    std::vector<std::size_t> points;
    for (Index i = 0; i < w.height; ++i) {
      for (Index j = 0; j < w.width; ++j) {
        const Index h = p * w.stride_h - w.pad_top + i, v = q * w.stride_w - w.pad_left + j;
        if (h >= 0 && h < x[1] && v >= 0 && v < x[2]) points.push_back(place(x, n, h, v, c));
      }
    }
    return points;
  }

  template <class Body>  // body(place in y, points of x under its window)
  void for_each_pool(const Shape& x, const Shape& y, const Body& body) {
    for (Index n = 0; n < y[0]; ++n) {
      for (Index p = 0; p < y[1]; ++p) {
        for (Index q = 0; q < y[2]; ++q) {
          for (Index c = 0; c < y[3]; ++c) body(place(y, n, p, q, c), under_window(x, n, p, q, c));
        }
      }
    }
  }

  void max_pool() {
    for_each_pool(in_shape(0), out_shape(0), [&](std::size_t y, const std::vector<std::size_t>& points) {
      const std::size_t best =
          *std::ranges::max_element(points, {}, [&](std::size_t point) { return in(0)[point]; });
      out(0)[y] = in(0)[best];
      if (step_->outputs.size() > 1) out(1)[y] = static_cast<double>(best);
    });
  }

  void max_pool_backward() {
    for (std::size_t i = 0; i < in(1).size(); ++i) out(0)[static_cast<std::size_t>(in(0)[i])] += in(1)[i];
  }

  void avg_pool(bool backward) {
    const Shape &x = backward ? out_shape(0) : in_shape(0), &y = backward ? in_shape(0) : out_shape(0);
    for_each_pool(x, y, [&](std::size_t at_y, const std::vector<std::size_t>& points) {
      for (const std::size_t point : points) {
        const auto n = static_cast<double>(points.size());
        if (backward) {
          out(0)[point] += in(0)[at_y] / n;
        } else {
          out(0)[at_y] += in(0)[point] / n;
        }
      }
    });
  }

  void global_avg_pool(bool backward) {
    const Shape& x = backward ? out_shape(0) : in_shape(0);
    const auto points = static_cast<double>(x[1] * x[2]);
    for (std::size_t i = 0; i < (backward ? out(0) : in(0)).size(); ++i) {
      const auto sample = static_cast<Index>(i) / (x[1] * x[2] * x[3]);
      const auto y = static_cast<std::size_t>(sample * x[3] + static_cast<Index>(i) % x[3]);
      if (backward) {
        out(0)[i] = in(0)[y] / points;
      } else {
        out(0)[y] += in(0)[i] / points;
      }
    }
  }

  // Elements of x by group and channel.
  template <class Body>  // body(group, channel, its elements)
  void for_each_set(const Shape& shape, const Body& body) {
    const Index channels = shape.back();
    Index rows_a_sample = 1;
    for (std::size_t i = 1; i + 1 < shape.size(); ++i) rows_a_sample *= shape[i];
    for (Index first = 0; first < plan_.batch; first += plan_.group) {
      const Index last = std::min(first + plan_.group, plan_.batch);
      for (Index c = 0; c < channels; ++c) {
        std::vector<std::size_t> elements;
        for (Index row = first * rows_a_sample; row < last * rows_a_sample; ++row)
          elements.push_back(static_cast<std::size_t>(row * channels + c));
        body(first / plan_.group, c, elements, static_cast<double>(last - first));
      }
    }
  }

  void batch_norm() {
    const OpAttributes& a = step_->attributes;
    const auto channels = static_cast<std::size_t>(in_shape(0).back());
    for_each_set(in_shape(0),
                 [&](Index g, Index c, const std::vector<std::size_t>& elements, double samples) {
                   const auto n = static_cast<double>(elements.size());
                   double mean = 0, squares = 0;
                   for (const std::size_t i : elements) mean += in(0)[i] / n;
                   for (const std::size_t i : elements) squares += (in(0)[i] - mean) * (in(0)[i] - mean);
                   const double inverse = 1 / std::sqrt(squares / n + a.epsilon);
                   const auto channel = static_cast<std::size_t>(c);
                   const std::size_t set = static_cast<std::size_t>(g) * channels + channel;
                   out(1)[set] = mean;
                   out(2)[set] = inverse;
                   out(3)[channel] += samples * mean;
                   if (n > 1) out(3)[channels + channel] += samples * squares / (a.unbiased ? n - 1 : n);
                   if (c == 0) out(3)[2 * channels] += samples;
                   if (c == 0 && n > 1) out(3)[2 * channels + 1] += samples;
                   for (const std::size_t i : elements) {
                     const double z = (in(0)[i] - mean) * inverse * in(1)[channel] + in(2)[channel];
                     out(0)[i] = activated(z + (a.residual ? at(step_->inputs.back())[i] : 0.0));
                   }
                 });
  }

  void batch_norm_inference() {
    const OpAttributes& a = step_->attributes;
    const auto channels = static_cast<std::size_t>(in_shape(0).back());
    for (std::size_t i = 0; i < in(0).size(); ++i) {
      const std::size_t c = i % channels;
      const double z = (in(0)[i] - in(3)[c]) / std::sqrt(in(4)[c] + a.epsilon) * in(1)[c] + in(2)[c];
      out(0)[i] = activated(z + (a.residual ? at(step_->inputs.back())[i] : 0.0));
    }
  }

  void batch_norm_backward() {
    const OpAttributes& a = step_->attributes;
    const auto channels = static_cast<std::size_t>(in_shape(0).back());
    const auto masked = [&](std::size_t i) { return a.relu && !(in(5)[i] > 0) ? 0.0 : in(4)[i]; };
    for_each_set(in_shape(0), [&](Index g, Index c, const std::vector<std::size_t>& elements, double) {
      const auto channel = static_cast<std::size_t>(c);
      const std::size_t set = static_cast<std::size_t>(g) * channels + channel;
      const double mean = in(2)[set], inverse = in(3)[set], n = static_cast<double>(elements.size());
      double dbeta = 0, dgamma = 0;
      for (const std::size_t i : elements) {
        dbeta += masked(i);
        dgamma += masked(i) * (in(0)[i] - mean) * inverse;
        if (a.residual) out(3)[i] = masked(i);
      }
      out(1)[channel] += dgamma;
      out(2)[channel] += dbeta;
      for (const std::size_t i : elements) {
        const double xhat = (in(0)[i] - mean) * inverse;
        out(0)[i] = in(1)[channel] * inverse * (masked(i) - dbeta / n - xhat * dgamma / n);
      }
    });
  }

  void loss() {
    const auto classes = static_cast<std::size_t>(plan_.classes);
    const double smoothing = step_->attributes.label_smoothing;
    for (std::size_t n = 0; n < input_.labels.size(); ++n) {
      if (input_.labels[n] < 0) continue;
      const auto label = static_cast<std::size_t>(input_.labels[n]);
      const auto z = std::span<const double>(in(0)).subspan(n * classes, classes);
      const auto best = std::ranges::max_element(z);
      double sum = 0;
      for (const double value : z) sum += std::exp(value - *best);
      result_.sums.count += 1;
      result_.sums.correct += static_cast<std::size_t>(best - z.begin()) == label;
      for (std::size_t k = 0; k < classes; ++k) {
        const double wanted = (k == label ? 1 - smoothing : 0.0) + smoothing / static_cast<double>(classes);
        result_.sums.loss += wanted * (std::log(sum) + *best - z[k]);
        if (!step_->outputs.empty()) out(0)[n * classes + k] = std::exp(z[k] - *best) / sum - wanted;
      }
    }
  }

  const Plan& plan_;
  const ReferenceInput& input_;
  const PlanStep* step_ = nullptr;
  ReferenceResult result_;
};

void load_running(const Plan& plan, const std::vector<std::vector<double>>& running,
                  Interpreter& interpreter) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].role != TensorRole::kRunningStatistic) continue;
    Values& values = interpreter.at(static_cast<TensorId>(i));
    // Mean and variance take turns.
    std::ranges::fill(values, next % 2 == 0 ? 0.0 : 1.0);
    if (!running.empty()) values = running[next];
    ++next;
  }
}

}  // namespace

ReferenceResult run_reference(const Plan& plan, const std::vector<std::vector<double>>& parameters,
                              const ReferenceInput& input, const std::vector<std::vector<double>>& running) {
  Interpreter interpreter(plan, input);
  interpreter.at(plan.input).assign(input.features.begin(), input.features.end());
  for (std::size_t i = 0; i < plan.parameters.size(); ++i)
    interpreter.at(plan.parameters[i].tensor) = parameters[i];
  load_running(plan, running, interpreter);
  for (const PlanStep& step : plan.steps) interpreter.run(step);
  return interpreter.take();
}

}  // namespace evenkeel::trainer
