#include "trainer/data/resize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace evenkeel::trainer {
namespace {

// Weights are whole numbers that add up to 2^kWeightBits exactly, so that an even area stays what it is.
constexpr int kWeightBits = 15;

// One output pixel: sum of weight[k] * source[first + k].
struct Taps {
  int first = 0;
  std::vector<std::int32_t> weight;
};

Taps taps_at(double center, double support, int source_size) {
  Taps taps;
  taps.first = std::clamp(static_cast<int>(std::floor(center - support + 0.5)), 0, source_size - 1);
  const int last =
      std::clamp(static_cast<int>(std::floor(center + support - 0.5)), taps.first, source_size - 1);
  std::vector<double> exact;
  double sum = 0;
  for (int i = taps.first; i <= last; ++i) {
    exact.push_back(std::max(0.0, 1.0 - std::abs(i + 0.5 - center) / support));
    sum += exact.back();
  }
  // Rounded so that the error never adds up: each weight is the difference of two rounded partial sums.
  double partial = 0;
  std::int64_t given = 0;
  for (const double weight : exact) {
    partial += sum > 0 ? weight / sum : 1.0 / static_cast<double>(exact.size());
    const std::int64_t upto = std::llround(partial * (1 << kWeightBits));
    taps.weight.push_back(static_cast<std::int32_t>(upto - given));
    given = upto;
  }
  return taps;
}

// For all output pixels of one axis.
std::vector<Taps> taps_of(double start, double length, int source_size, int target_size) {
  const double scale = length / target_size;
  const double support = std::max(1.0, scale);
  std::vector<Taps> all;
  all.reserve(static_cast<std::size_t>(target_size));
  for (int i = 0; i < target_size; ++i)
    all.push_back(taps_at(start + (i + 0.5) * scale, support, source_size));
  return all;
}

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp((sum + (1 << (kWeightBits - 1))) >> kWeightBits, 0, 255));
}

// sums[i] += weight * row[i]. Alone in a function, and in two versions, because most of the time goes here;
// integer sums are the same in both.
#if defined(__x86_64__)
__attribute__((target_clones("avx2", "default"), optimize("O3")))
#endif
void add_row(std::int32_t* sums, const std::uint8_t* row, std::int32_t weight, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += weight * row[i];
}

// Rows first: whole source rows are added up, without a stride. Only the columns that are needed.
void shrink_rows(const Image& source, const Taps& taps, std::size_t first_byte,
                 std::vector<std::int32_t>& sums) {
  std::fill(sums.begin(), sums.end(), 0);
  for (std::size_t k = 0; k < taps.weight.size(); ++k) {
    add_row(sums.data(), source.row(taps.first + static_cast<int>(k)) + first_byte, taps.weight[k],
            sums.size());
  }
}

void shrink_columns(const std::vector<std::uint8_t>& row, const std::vector<Taps>& columns, int first_column,
                    int channels, std::uint8_t* out) {
  for (const Taps& taps : columns) {
    const std::uint8_t* from = row.data() + (taps.first - first_column) * channels;
    for (int c = 0; c < channels; ++c) {
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < taps.weight.size(); ++k) {
        sum += taps.weight[k] * from[k * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c)];
      }
      *out++ = to_byte(sum);
    }
  }
}

}  // namespace

void resize_box(const Image& source, const Box& box, int height, int width, Image& target) {
  assert(&source != &target && height >= 1 && width >= 1 && box.height > 0 && box.width > 0);
  target.reset(height, width, source.channels);
  const std::vector<Taps> rows = taps_of(box.y, box.height, source.height, height);
  const std::vector<Taps> columns = taps_of(box.x, box.width, source.width, width);
  const int first_column = columns.front().first;
  const int end_column = columns.back().first + static_cast<int>(columns.back().weight.size());
  const auto channels = static_cast<std::size_t>(source.channels);
  const std::size_t first_byte = static_cast<std::size_t>(first_column) * channels;
  std::vector<std::int32_t> sums(static_cast<std::size_t>(end_column - first_column) * channels);
  std::vector<std::uint8_t> row(sums.size());
  for (int y = 0; y < height; ++y) {
    shrink_rows(source, rows[static_cast<std::size_t>(y)], first_byte, sums);
    std::transform(sums.begin(), sums.end(), row.begin(), to_byte);
    shrink_columns(row, columns, first_column, source.channels, target.row(y));
  }
}

}  // namespace evenkeel::trainer
