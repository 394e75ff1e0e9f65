// Batch normalisation over (rows, channels), rows = samples x points: statistics over fixed groups of samples
// (Ghost), over the batch (Local) or over the batches of all ranks (Sync). Both passes normalise with the
// biased variance. Sums are taken chunk by chunk in an order that the shape alone fixes, so threads change no
// bit.
#include <algorithm>
#include <cmath>

#include "trainer/backend/cpu/operators.h"

namespace evenkeel::trainer {
namespace {

// Rows of one group that one thread sums.
struct Chunk {
  std::int64_t group, begin, end;
};

struct NormShape {
  std::int64_t channels = 0;
  std::int64_t samples = 0;
  std::int64_t points = 1;  // rows of a sample
  std::int64_t group = 1;   // samples
  std::int64_t groups = 0;
  bool sync = false;
  std::vector<Chunk> chunks;

  NormShape(const Plan& plan, TensorId x) {
    const Shape& shape = tensor_of(plan, x).shape;
    channels = shape.back();
    samples = plan.batch;
    for (std::size_t i = 1; i + 1 < shape.size(); ++i) points *= shape[i];
    sync = plan.statistics_mode == StatisticsMode::kSync;
    group = std::max<std::int64_t>(1, plan.group);
    groups = (samples + group - 1) / group;
    for (std::int64_t g = 0; g < groups; ++g) cut(g);
  }

  std::int64_t samples_of(std::int64_t g) const { return std::min(group, samples - g * group); }
  std::int64_t rows_of(std::int64_t g) const { return samples_of(g) * points; }
  std::int64_t rows() const { return samples * points; }
  // Sync keeps one set of statistics even where this rank has no samples.
  std::size_t sets() const { return static_cast<std::size_t>(sync ? 1 : groups); }

 private:
  void cut(std::int64_t g) {
    constexpr std::int64_t kLeastRows = 64, kMostChunks = 16;
    const std::int64_t first = g * group * points;
    const std::int64_t rows = rows_of(g);
    const std::int64_t step = std::max(kLeastRows, (rows + kMostChunks - 1) / kMostChunks);
    for (std::int64_t at = 0; at < rows; at += step)
      chunks.push_back({g, first + at, first + std::min(at + step, rows)});
  }
};

// Two sums for each channel over the rows [begin, end): term(element, channel, width, sums) adds one row's
// part for `width` channels. Floats for a few rows, then doubles: fast and exact enough for a variance.
constexpr std::int64_t kBlock = 64;
using Sums = float[2][kBlock];
template <class Term>
void sum_rows(const Chunk& chunk, std::int64_t channels, double* out, const Term& term) {
  constexpr std::int64_t kFlushRows = 32;
  for (std::int64_t c0 = 0; c0 < channels; c0 += kBlock) {
    const std::int64_t width = std::min(kBlock, channels - c0);
    double total[2][kBlock] = {};
    for (std::int64_t first = chunk.begin; first < chunk.end; first += kFlushRows) {
      Sums part = {};
      const std::int64_t last = std::min(first + kFlushRows, chunk.end);
      for (std::int64_t row = first; row < last; ++row) term(row * channels + c0, c0, width, part);
      for (std::int64_t c = 0; c < width; ++c) {
        total[0][c] += static_cast<double>(part[0][c]);
        total[1][c] += static_cast<double>(part[1][c]);
      }
    }
    std::copy_n(total[0], width, out + c0);
    std::copy_n(total[1], width, out + channels + c0);
  }
}

// Workspace: two sums for each chunk and channel, then two for each set of statistics and one count.
class NormOperator : public Operator {
 public:
  NormOperator(const Plan& plan, TensorId x) : shape_(plan, x) {}

  std::uint64_t workspace_bytes() const override {
    const std::size_t sets = shape_.chunks.size() + shape_.sets();
    return (sets * 2 * static_cast<std::size_t>(shape_.channels) + 1) * sizeof(double);
  }

  void bind(const TensorAddresses& addresses) override {
    partial_ = reinterpret_cast<double*>(addresses.workspace);
    totals_ = partial_ + shape_.chunks.size() * row_of_sums();
  }

 protected:
  std::size_t row_of_sums() const { return 2 * static_cast<std::size_t>(shape_.channels); }
  double* total(std::size_t set) const { return totals_ + set * row_of_sums(); }

  // term as in sum_rows, with the chunk's set as last argument; afterwards total(set) holds the sums.
  template <class Term>
  void sum(const Term& term) {
    const auto count = static_cast<std::int64_t>(shape_.chunks.size());
#pragma omp parallel for schedule(static) if (shape_.rows() * shape_.channels >= kParallelFrom)
    for (std::int64_t i = 0; i < count; ++i) {
      const Chunk& chunk = shape_.chunks[static_cast<std::size_t>(i)];
      sum_rows(chunk, shape_.channels, partial_ + static_cast<std::size_t>(i) * row_of_sums(),
               [&](std::int64_t at, std::int64_t c, std::int64_t width, Sums& sums) {
                 term(at, c, width, sums, chunk.group);
               });
    }
    std::fill_n(totals_, shape_.sets() * row_of_sums(), 0.0);
    for (std::size_t i = 0; i < shape_.chunks.size(); ++i) {
      double* to = total(static_cast<std::size_t>(shape_.chunks[i].group));
      for (std::size_t k = 0; k < row_of_sums(); ++k) to[k] += partial_[i * row_of_sums() + k];
    }
  }

  // Sync: adds the sums, and `rows` behind them, over all ranks. Returns the rows of all; 0 after a failure.
  double exchange(RunContext& context, double rows) {
    if (!shape_.sync || context.exchange == nullptr || !*context.exchange) return rows;
    totals_[row_of_sums()] = rows;
    context.failure = (*context.exchange)(std::span<double>(totals_, row_of_sums() + 1));
    return context.failure.ok() ? totals_[row_of_sums()] : 0;
  }

  template <class Body>  // body(first element of a row, group): all rows, once
  void for_each_row(const Body& body) {
    const auto count = static_cast<std::int64_t>(shape_.chunks.size());
#pragma omp parallel for schedule(static) if (shape_.rows() * shape_.channels >= kParallelFrom)
    for (std::int64_t i = 0; i < count; ++i) {
      const Chunk& chunk = shape_.chunks[static_cast<std::size_t>(i)];
      for (std::int64_t row = chunk.begin; row < chunk.end; ++row) body(row * shape_.channels, chunk.group);
    }
  }

  NormShape shape_;
  double* partial_ = nullptr;
  double* totals_ = nullptr;
};

class BatchNorm : public NormOperator {
 public:
  BatchNorm(const Plan& plan, const PlanStep& step)
      : NormOperator(plan, step.inputs[0]),
        inputs_(step.inputs),
        outputs_(step.outputs),
        a_(step.attributes) {}

  void bind(const TensorAddresses& addresses) override {
    NormOperator::bind(addresses);
    x_ = addresses.at(inputs_[0]);
    gamma_ = addresses.at(inputs_[1]);
    beta_ = addresses.at(inputs_[2]);
    residual_ = a_.residual ? addresses.at(inputs_.back()) : nullptr;
    y_ = addresses.at(outputs_[0]);
    mean_ = addresses.at(outputs_[1]);
    inverse_ = addresses.at(outputs_[2]);
    sums_ = addresses.at(outputs_[3]);
  }

  void run(RunContext& context) noexcept override {
    std::fill_n(sums_, 2 * shape_.channels + 2, 0.0f);
    const float* x = x_;
    sum([x](std::int64_t at, std::int64_t, std::int64_t width, Sums& sums, std::int64_t) {
      for (std::int64_t c = 0; c < width; ++c) sums[0][c] += x[at + c];
    });
    const double all_rows = exchange(context, static_cast<double>(shape_.rows()));
    if (!context.failure.ok()) return;
    for (std::int64_t g = 0; g < shape_.groups; ++g) keep_mean(g, rows_of(g, all_rows));
    sum([this](std::int64_t at, std::int64_t c0, std::int64_t width, Sums& sums, std::int64_t g) {
      const float* mean = mean_ + g * shape_.channels + c0;
      for (std::int64_t c = 0; c < width; ++c) {
        const float centred = x_[at + c] - mean[c];
        sums[0][c] += centred * centred;
      }
    });
    exchange(context, static_cast<double>(shape_.rows()));
    if (!context.failure.ok()) return;
    for (std::int64_t g = 0; g < shape_.groups; ++g) keep_deviation(g, rows_of(g, all_rows));
    for_each_row([this](std::int64_t at, std::int64_t g) { normalise(at, g); });
  }

 private:
  double rows_of(std::int64_t g, double all_rows) const {
    return shape_.sync ? all_rows : static_cast<double>(shape_.rows_of(g));
  }

  // sums: n * mean for each channel, n * variance, and the two n; n counts samples, exact in floats.
  void keep_mean(std::int64_t g, double rows) {
    const auto n = static_cast<float>(shape_.samples_of(g));
    const double* sum = total(static_cast<std::size_t>(g));
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      const auto mean = static_cast<float>(sum[c] / rows);
      mean_[g * shape_.channels + c] = mean;
      sums_[c] += n * mean;
    }
    sums_[2 * shape_.channels] += n;
  }

  void keep_deviation(std::int64_t g, double rows) {
    const auto n = static_cast<float>(shape_.samples_of(g));
    const double* squares = total(static_cast<std::size_t>(g));
    // A single value has no variance to learn from; the running one stays as it is.
    const bool learns = rows > 1;
    const double divisor = a_.unbiased ? rows - 1 : rows;
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      inverse_[g * shape_.channels + c] = static_cast<float>(1.0 / std::sqrt(squares[c] / rows + a_.epsilon));
      if (learns) sums_[shape_.channels + c] += n * static_cast<float>(squares[c] / divisor);
    }
    if (learns) sums_[2 * shape_.channels + 1] += n;
  }

  void normalise(std::int64_t at, std::int64_t g) const {
    const float* mean = mean_ + g * shape_.channels;
    const float* inverse = inverse_ + g * shape_.channels;
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      float y = (x_[at + c] - mean[c]) * inverse[c] * gamma_[c] + beta_[c];
      if (residual_ != nullptr) y += residual_[at + c];
      y_[at + c] = a_.relu && y < 0.0f ? 0.0f : y;
    }
  }

  std::vector<TensorId> inputs_, outputs_;
  OpAttributes a_;
  const float *x_ = nullptr, *gamma_ = nullptr, *beta_ = nullptr, *residual_ = nullptr;
  float *y_ = nullptr, *mean_ = nullptr, *inverse_ = nullptr, *sums_ = nullptr;
};

class BatchNormInference : public Operator {
 public:
  BatchNormInference(const Plan& plan, const PlanStep& step)
      : inputs_(step.inputs),
        y_id_(step.outputs[0]),
        a_(step.attributes),
        channels_(tensor_of(plan, inputs_[0]).shape.back()),
        rows_(elements_of(plan, inputs_[0]) / channels_),
        scale_(static_cast<std::size_t>(channels_)),
        shift_(static_cast<std::size_t>(channels_)) {}

  void bind(const TensorAddresses& addresses) override {
    for (std::size_t i = 0; i < 5; ++i) in_[i] = addresses.at(inputs_[i]);
    residual_ = a_.residual ? addresses.at(inputs_.back()) : nullptr;
    y_ = addresses.at(y_id_);
  }

  void run(RunContext&) noexcept override {
    for (std::size_t c = 0; c < scale_.size(); ++c) {
      const double inverse = 1.0 / std::sqrt(static_cast<double>(in_[4][c]) + a_.epsilon);
      scale_[c] = static_cast<float>(static_cast<double>(in_[1][c]) * inverse);
      shift_[c] =
          static_cast<float>(static_cast<double>(in_[2][c]) -
                             static_cast<double>(in_[3][c]) * static_cast<double>(in_[1][c]) * inverse);
    }
#pragma omp parallel for schedule(static) if (rows_ * channels_ >= kParallelFrom)
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const std::int64_t at = row * channels_ + c;
        float y = in_[0][at] * scale_[static_cast<std::size_t>(c)] + shift_[static_cast<std::size_t>(c)];
        if (residual_ != nullptr) y += residual_[at];
        y_[at] = a_.relu && y < 0.0f ? 0.0f : y;
      }
    }
  }

 private:
  std::vector<TensorId> inputs_;
  TensorId y_id_;
  OpAttributes a_;
  std::int64_t channels_, rows_;
  std::vector<float> scale_, shift_;
  const float* in_[5] = {};  // x, gamma, beta, running mean, running variance
  const float* residual_ = nullptr;
  float* y_ = nullptr;
};

// With z = gamma * xhat + beta, xhat = (x - mean) * inverse, over the n values of a group:
//   dbeta = sum dz,  dgamma = sum dz * xhat,  dx = gamma * inverse * (dz - dbeta / n - xhat * dgamma / n)
class BatchNormBackward : public NormOperator {
 public:
  BatchNormBackward(const Plan& plan, const PlanStep& step)
      : NormOperator(plan, step.inputs[0]),
        inputs_(step.inputs),
        outputs_(step.outputs),
        a_(step.attributes),
        factors_(shape_.sets() * 3 * static_cast<std::size_t>(shape_.channels)) {}

  void bind(const TensorAddresses& addresses) override {
    NormOperator::bind(addresses);
    x_ = addresses.at(inputs_[0]);
    gamma_ = addresses.at(inputs_[1]);
    mean_ = addresses.at(inputs_[2]);
    inverse_ = addresses.at(inputs_[3]);
    dy_ = addresses.at(inputs_[4]);
    y_ = a_.relu ? addresses.at(inputs_[5]) : nullptr;
    dx_ = addresses.at(outputs_[0]);
    dgamma_ = addresses.at(outputs_[1]);
    dbeta_ = addresses.at(outputs_[2]);
    dresidual_ = a_.residual ? addresses.at(outputs_[3]) : nullptr;
  }

  void run(RunContext& context) noexcept override {
    sum([this](std::int64_t at, std::int64_t c0, std::int64_t width, Sums& sums, std::int64_t g) {
      const float* mean = mean_ + g * shape_.channels + c0;
      const float* inverse = inverse_ + g * shape_.channels + c0;
      for (std::int64_t c = 0; c < width; ++c) {
        const float dz = masked(at + c);
        if (dresidual_ != nullptr) dresidual_[at + c] = dz;
        sums[0][c] += dz;
        sums[1][c] += dz * (x_[at + c] - mean[c]) * inverse[c];
      }
    });
    keep_parameter_gradients();
    const double all_rows = exchange(context, static_cast<double>(shape_.rows()));
    if (!context.failure.ok()) return;
    for (std::int64_t g = 0; g < shape_.groups; ++g)
      prepare(g, shape_.sync ? all_rows : static_cast<double>(shape_.rows_of(g)));
    for_each_row([this](std::int64_t at, std::int64_t g) {
      const float* f = factors_.data() + g * 3 * shape_.channels;
      const float* mean = mean_ + g * shape_.channels;
      for (std::int64_t c = 0; c < shape_.channels; ++c) {
        // dresidual may lie where dy lay; it holds the masked gradient by now.
        const float dz = dresidual_ != nullptr ? dresidual_[at + c] : masked(at + c);
        dx_[at + c] =
            f[c] * ((dz - f[2 * shape_.channels + c]) - f[shape_.channels + c] * (x_[at + c] - mean[c]));
      }
    });
  }

 private:
  float masked(std::int64_t at) const { return y_ != nullptr && !(y_[at] > 0.0f) ? 0.0f : dy_[at]; }

  // Of this rank alone: they are added over ranks with all other gradients. Without samples arena 3 is zero.
  void keep_parameter_gradients() {
    if (shape_.groups == 0) return;
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      double beta = 0, gamma = 0;
      for (std::int64_t g = 0; g < shape_.groups; ++g) {
        beta += total(static_cast<std::size_t>(g))[c];
        gamma += total(static_cast<std::size_t>(g))[shape_.channels + c];
      }
      dbeta_[c] = static_cast<float>(beta);
      dgamma_[c] = static_cast<float>(gamma);
    }
  }

  // dx = f0 * ((dz - f2) - f1 * (x - mean)): differences first, so that what cancels cancels before it is
  // scaled.
  void prepare(std::int64_t g, double rows) {
    float* f = factors_.data() + g * 3 * shape_.channels;
    const double* sums = total(static_cast<std::size_t>(g));
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      const double inverse = static_cast<double>(inverse_[g * shape_.channels + c]);
      const double scale = static_cast<double>(gamma_[c]) * inverse;
      f[c] = static_cast<float>(scale);
      f[shape_.channels + c] = static_cast<float>(inverse * sums[shape_.channels + c] / rows);
      f[2 * shape_.channels + c] = static_cast<float>(sums[c] / rows);
    }
  }

  std::vector<TensorId> inputs_, outputs_;
  OpAttributes a_;
  std::vector<float> factors_;  // (sets, 3, channels)
  const float *x_ = nullptr, *gamma_ = nullptr, *mean_ = nullptr, *inverse_ = nullptr, *dy_ = nullptr,
              *y_ = nullptr;
  float *dx_ = nullptr, *dgamma_ = nullptr, *dbeta_ = nullptr, *dresidual_ = nullptr;
};

}  // namespace

std::unique_ptr<Operator> make_batch_norm(const Plan& plan, const PlanStep& step) {
  if (step.op == OpKind::kBatchNormInference) return std::make_unique<BatchNormInference>(plan, step);
  return std::make_unique<BatchNorm>(plan, step);
}

std::unique_ptr<Operator> make_batch_norm_backward(const Plan& plan, const PlanStep& step) {
  return std::make_unique<BatchNormBackward>(plan, step);
}

}  // namespace evenkeel::trainer
