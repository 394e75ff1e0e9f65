// Pools and their backward: own loops over (N, H, W, C), the channels innermost.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "trainer/backend/cpu/operators.h"

namespace evenkeel::trainer {
namespace {

// A window over an image x (N, H, W, C) that gives y (N, P, Q, C).
struct PoolShape {
  std::int64_t samples, height, width, channels, out_height, out_width;
  Window window;

  PoolShape(const Plan& plan, const PlanStep& step, TensorId x, TensorId y) : window(step.attributes.window) {
    const Shape& in = tensor_of(plan, x).shape;
    const Shape& out = tensor_of(plan, y).shape;
    samples = in[0], height = in[1], width = in[2], channels = in[3];
    out_height = out[1], out_width = out[2];
  }
  std::int64_t x_at(std::int64_t n, std::int64_t h, std::int64_t w) const {
    return ((n * height + h) * width + w) * channels;
  }
  std::int64_t y_at(std::int64_t n, std::int64_t p, std::int64_t q) const {
    return ((n * out_height + p) * out_width + q) * channels;
  }
  std::int64_t outputs() const { return samples * out_height * out_width * channels; }
};

// The part of a window that lies inside the image, in one direction.
struct Range {
  std::int64_t begin, end;
  Range(std::int64_t place, std::int64_t stride, std::int64_t pad, std::int64_t window, std::int64_t size)
      : begin(std::max<std::int64_t>(place * stride - pad, 0)),
        end(std::min(place * stride - pad + window, size)) {}
};

template <class Body>  // body(n, p, q, rows, columns)
void for_each_window(const PoolShape& s, const Body& body) {
#pragma omp parallel for schedule(static) if (s.outputs() >= kParallelFrom)
  for (std::int64_t n = 0; n < s.samples; ++n) {
    for (std::int64_t p = 0; p < s.out_height; ++p) {
      for (std::int64_t q = 0; q < s.out_width; ++q) {
        body(n, p, q, Range(p, s.window.stride_h, s.window.pad_top, s.window.height, s.height),
             Range(q, s.window.stride_w, s.window.pad_left, s.window.width, s.width));
      }
    }
  }
}

class Pool : public Operator {
 public:
  // Forward: inputs {x}, outputs {y[, index]}. Backward: outputs {dx}; inputs {index, dy} or {dy}.
  Pool(const Plan& plan, const PlanStep& step, TensorId x, TensorId y, TensorId index)
      : x_id_(x), y_id_(y), index_id_(index), shape_(plan, step, x, y) {}

  void bind(const TensorAddresses& addresses) override {
    x_ = addresses.at(x_id_);
    y_ = addresses.at(y_id_);
    index_ = index_id_ == kNoTensor ? nullptr : addresses.at(index_id_);
  }

 protected:
  TensorId x_id_, y_id_, index_id_;
  PoolShape shape_;
  float* x_ = nullptr;
  float* y_ = nullptr;
  float* index_ = nullptr;  // int32 bits: place of each maximum, in elements of the sample
};

class MaxPool : public Pool {
 public:
  using Pool::Pool;
  // The first of equal maxima wins; NaN counts as the largest, so that it is seen.
  void run(RunContext&) noexcept override {
    const PoolShape& s = shape_;
    for_each_window(s, [&](std::int64_t n, std::int64_t p, std::int64_t q, Range rows, Range columns) {
      const std::int64_t sample = s.x_at(n, 0, 0);
      const std::int64_t to = s.y_at(n, p, q);
      for (std::int64_t c = 0; c < s.channels; ++c) {
        std::int64_t best = s.x_at(n, rows.begin, columns.begin) + c;
        for (std::int64_t h = rows.begin; h < rows.end; ++h) {
          for (std::int64_t w = columns.begin; w < columns.end; ++w) {
            const std::int64_t at = s.x_at(n, h, w) + c;
            if (x_[at] > x_[best] || (std::isnan(x_[at]) && !std::isnan(x_[best]))) best = at;
          }
        }
        y_[to + c] = x_[best];
        if (index_ != nullptr)
          index_[to + c] = std::bit_cast<float>(static_cast<std::int32_t>(best - sample));
      }
    });
  }
};

class MaxPoolBackward : public Pool {
 public:
  using Pool::Pool;
  void run(RunContext&) noexcept override {
    const PoolShape& s = shape_;
    std::fill_n(x_, s.samples * s.height * s.width * s.channels, 0.0f);
    for_each_window(s, [&](std::int64_t n, std::int64_t p, std::int64_t q, Range, Range) {
      float* sample = x_ + s.x_at(n, 0, 0);
      const std::int64_t from = s.y_at(n, p, q);
      for (std::int64_t c = 0; c < s.channels; ++c)
        sample[std::bit_cast<std::int32_t>(index_[from + c])] += y_[from + c];
    });
  }
};

class AvgPool : public Pool {
 public:
  using Pool::Pool;
  void run(RunContext&) noexcept override {
    const PoolShape& s = shape_;
    for_each_window(s, [&](std::int64_t n, std::int64_t p, std::int64_t q, Range rows, Range columns) {
      float* y = y_ + s.y_at(n, p, q);
      std::fill_n(y, s.channels, 0.0f);
      for (std::int64_t h = rows.begin; h < rows.end; ++h) {
        for (std::int64_t w = columns.begin; w < columns.end; ++w) {
          const float* x = x_ + s.x_at(n, h, w);
          for (std::int64_t c = 0; c < s.channels; ++c) y[c] += x[c];
        }
      }
      const float scale = 1.0f / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
      for (std::int64_t c = 0; c < s.channels; ++c) y[c] *= scale;
    });
  }
};

class AvgPoolBackward : public Pool {
 public:
  using Pool::Pool;
  void run(RunContext&) noexcept override {
    const PoolShape& s = shape_;
    std::fill_n(x_, s.samples * s.height * s.width * s.channels, 0.0f);
    for_each_window(s, [&](std::int64_t n, std::int64_t p, std::int64_t q, Range rows, Range columns) {
      const float* dy = y_ + s.y_at(n, p, q);
      const float scale = 1.0f / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
      for (std::int64_t h = rows.begin; h < rows.end; ++h) {
        for (std::int64_t w = columns.begin; w < columns.end; ++w) {
          float* dx = x_ + s.x_at(n, h, w);
          for (std::int64_t c = 0; c < s.channels; ++c) dx[c] += scale * dy[c];
        }
      }
    });
  }
};

// Mean over all points: x (N, H, W, C) -> y (N, C), and back.
class GlobalAvgPool : public Operator {
 public:
  GlobalAvgPool(const Plan& plan, TensorId x, TensorId y, bool backward)
      : x_id_(x), y_id_(y), backward_(backward) {
    const Shape& in = tensor_of(plan, x).shape;
    samples_ = in[0], points_ = in[1] * in[2], channels_ = in[3];
  }

  void bind(const TensorAddresses& addresses) override {
    x_ = addresses.at(x_id_);
    y_ = addresses.at(y_id_);
  }

  void run(RunContext&) noexcept override {
    const float scale = 1.0f / static_cast<float>(points_);
#pragma omp parallel for schedule(static) if (samples_ * points_ * channels_ >= kParallelFrom)
    for (std::int64_t n = 0; n < samples_; ++n) {
      float* x = x_ + n * points_ * channels_;
      float* y = y_ + n * channels_;
      if (!backward_) std::fill_n(y, channels_, 0.0f);
      for (std::int64_t i = 0; i < points_; ++i, x += channels_) {
        for (std::int64_t c = 0; c < channels_; ++c) {
          if (backward_) {
            x[c] = y[c] * scale;
          } else {
            y[c] += x[c];
          }
        }
      }
      for (std::int64_t c = 0; !backward_ && c < channels_; ++c) y[c] *= scale;
    }
  }

 private:
  TensorId x_id_, y_id_;
  bool backward_;
  std::int64_t samples_ = 0, points_ = 0, channels_ = 0;
  float* x_ = nullptr;
  float* y_ = nullptr;
};

}  // namespace

std::unique_ptr<Operator> make_pool(const Plan& plan, const PlanStep& step) {
  const TensorId in = step.inputs[0];
  const TensorId out = step.outputs[0];
  switch (step.op) {
    case OpKind::kMaxPool:
      return std::make_unique<MaxPool>(plan, step, in, out,
                                       step.outputs.size() > 1 ? step.outputs[1] : kNoTensor);
    case OpKind::kMaxPoolBackward:
      return std::make_unique<MaxPoolBackward>(plan, step, out, step.inputs[1], in);
    case OpKind::kAvgPool:
      return std::make_unique<AvgPool>(plan, step, in, out, kNoTensor);
    case OpKind::kAvgPoolBackward:
      return std::make_unique<AvgPoolBackward>(plan, step, out, in, kNoTensor);
    case OpKind::kGlobalAvgPool:
      return std::make_unique<GlobalAvgPool>(plan, in, out, false);
    default:
      return std::make_unique<GlobalAvgPool>(plan, out, in, true);
  }
}

}  // namespace evenkeel::trainer
