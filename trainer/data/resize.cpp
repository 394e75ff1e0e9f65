#include "trainer/data/resize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace evenkeel::trainer {
namespace {

// Weights are whole numbers that add up to 2^kWeightBits exactly, so that an even area stays what it is.
constexpr int kWeightBits = 15;

// One axis: output pixel i is the sum of weight[i * taps + k] * source[first[i] + k] over k < taps. All have
// the same number of taps, padded with zeros inside the source.
struct Axis {
  int taps = 0;
  std::vector<int> first;
  std::vector<std::int32_t> weights;

  const std::int32_t* weights_of(int i) const { return weights.data() + static_cast<std::size_t>(i * taps); }
};

// The weights of the source pixels that the triangle around `center` covers, in double, adding up to 1.
struct Exact {
  int first = 0;
  std::vector<double> weights;
};

Exact exact_weights(double center, double support, int source_size) {
  Exact exact;
  exact.first = std::clamp(static_cast<int>(std::floor(center - support + 0.5)), 0, source_size - 1);
  const int last =
      std::clamp(static_cast<int>(std::floor(center + support - 0.5)), exact.first, source_size - 1);
  double sum = 0;
  for (int i = exact.first; i <= last; ++i) {
    exact.weights.push_back(std::max(0.0, 1.0 - std::abs(i + 0.5 - center) / support));
    sum += exact.weights.back();
  }
  for (double& weight : exact.weights) {
    weight = sum > 0 ? weight / sum : 1.0 / static_cast<double>(exact.weights.size());
  }
  return exact;
}

// Rounded so that the error never adds up: each weight is the difference of two rounded partial sums.
void round_into(const std::vector<double>& exact, std::int32_t* out) {
  double partial = 0;
  std::int64_t given = 0;
  for (const double weight : exact) {
    partial += weight;
    const std::int64_t upto = std::llround(partial * (1 << kWeightBits));
    *out++ = static_cast<std::int32_t>(upto - given);
    given = upto;
  }
}

Axis make_axis(double start, double length, int source_size, int target_size) {
  const double scale = length / target_size;
  const double support = std::max(1.0, scale);
  Axis axis;
  axis.taps = std::min(source_size, static_cast<int>(std::ceil(2 * support)) + 1);
  axis.weights.resize(static_cast<std::size_t>(target_size) * static_cast<std::size_t>(axis.taps));
  for (int i = 0; i < target_size; ++i) {
    const Exact exact = exact_weights(start + (i + 0.5) * scale, support, source_size);
    const int first = std::min(exact.first, source_size - axis.taps);
    axis.first.push_back(first);
    round_into(exact.weights, axis.weights.data() + i * axis.taps + (exact.first - first));
  }
  return axis;
}

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp((sum + (1 << (kWeightBits - 1))) >> kWeightBits, 0, 255));
}

// sums[i] += weight * row[i]. Alone in a function, and in two versions, because most of the time goes here;
// integer sums are the same in both. In blocks of a fixed size, which the compiler turns into vectors.
#if defined(__x86_64__)
__attribute__((target_clones("avx2", "default")))
#endif
void add_row(std::int32_t* __restrict sums, const std::uint8_t* __restrict row, std::int32_t weight,
             std::size_t count) {
  constexpr std::size_t kBlock = 32;
  std::size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (std::size_t k = 0; k < kBlock; ++k) sums[i + k] += weight * row[i + k];
  }
  for (; i < count; ++i) sums[i] += weight * row[i];
}

// One row of the result before its columns are shrunk. Rows first: whole source rows are added up, without a
// stride, and only the bytes that are needed.
void shrink_rows(const Image& source, const Axis& rows, int y, std::size_t first_byte,
                 std::vector<std::int32_t>& sums, std::vector<std::uint8_t>& row) {
  std::fill(sums.begin(), sums.end(), 0);
  const std::int32_t* weights = rows.weights_of(y);
  for (int k = 0; k < rows.taps; ++k) {
    if (weights[k] == 0) continue;
    const int from = rows.first[static_cast<std::size_t>(y)] + k;
    add_row(sums.data(), source.row(from) + first_byte, weights[k], sums.size());
  }
  std::transform(sums.begin(), sums.end(), row.begin(), to_byte);
}

template <int kChannels>
void shrink_columns(const std::uint8_t* row, const Axis& columns, int first_column, std::uint8_t* out) {
  const int width = static_cast<int>(columns.first.size());
  for (int x = 0; x < width; ++x) {
    const std::uint8_t* from = row + (columns.first[static_cast<std::size_t>(x)] - first_column) * kChannels;
    const std::int32_t* weights = columns.weights_of(x);
    std::int32_t sums[kChannels] = {};
    for (int k = 0; k < columns.taps; ++k, from += kChannels) {
      for (int c = 0; c < kChannels; ++c) sums[c] += weights[k] * from[c];
    }
    for (const std::int32_t sum : sums) *out++ = to_byte(sum);
  }
}

}  // namespace

void resize_box(const Image& source, const Box& box, int height, int width, Image& target) {
  assert(&source != &target && height >= 1 && width >= 1 && box.height > 0 && box.width > 0);
  assert(source.channels == 1 || source.channels == 3);
  target.reset(height, width, source.channels);
  const Axis rows = make_axis(box.y, box.height, source.height, height);
  const Axis columns = make_axis(box.x, box.width, source.width, width);
  const int first_column = *std::min_element(columns.first.begin(), columns.first.end());
  const int end_column = *std::max_element(columns.first.begin(), columns.first.end()) + columns.taps;
  const auto channels = static_cast<std::size_t>(source.channels);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(end_column - first_column) * channels);
  std::vector<std::uint8_t> row(sums.size());
  const auto shrink = channels == 1 ? shrink_columns<1> : shrink_columns<3>;
  for (int y = 0; y < height; ++y) {
    shrink_rows(source, rows, y, static_cast<std::size_t>(first_column) * channels, sums, row);
    shrink(row.data(), columns, first_column, target.row(y));
  }
}

}  // namespace evenkeel::trainer
