#include "trainer/model/initializer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

#include "base/hash.h"
#include "base/philox.h"

namespace evenkeel::trainer {
namespace {

// What random numbers are for; a part of every key, so that two uses never share a stream.
constexpr std::uint64_t kPurposeInitialValue = 1;

// Standard deviation of a unit normal that is cut at two sigma.
constexpr double kCutNormalStddev = 0.87962566103423978;
constexpr double kCut = 2.0;

base::PhiloxKey key_of(std::uint64_t seed, std::uint32_t tensor_index) {
  const std::uint64_t mixed =
      base::mix64(base::mix64(base::mix64(seed) + kPurposeInitialValue) + tensor_index);
  return {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
}

// The random words of one element; `attempt` for samplers that throw some away.
base::PhiloxCounter words_of(base::PhiloxKey key, std::uint64_t element, std::uint32_t attempt) {
  return base::philox(
      {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32), attempt, 0}, key);
}

// In (0, 1): never 0, for the logarithm.
double unit(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32 | low) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

// A unit normal, again and again until it lies within the cut (19 of 20 do). Box and Muller give two at a
// time.
double cut_normal(base::PhiloxKey key, std::uint64_t element) {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const auto w = words_of(key, element, attempt);
    const double radius = std::sqrt(-2.0 * std::log(unit(w[0], w[1])));
    const double angle = 2.0 * std::numbers::pi * unit(w[2], w[3]);
    const double first = radius * std::cos(angle);
    if (std::abs(first) <= kCut) return first;
    const double second = radius * std::sin(angle);
    if (std::abs(second) <= kCut) return second;
  }
}

void fill_uniform(std::span<float> values, base::PhiloxKey key, double limit) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto w = words_of(key, i, 0);
    values[i] = static_cast<float>((2.0 * unit(w[0], w[1]) - 1.0) * limit);
  }
}

}  // namespace

double uniform_limit(InitializerKind kind, std::int64_t fan_in, std::int64_t fan_out) {
  const auto in = static_cast<double>(fan_in);
  const auto out = static_cast<double>(fan_out);
  return kind == InitializerKind::kGlorotUniform ? std::sqrt(6.0 / (in + out)) : std::sqrt(6.0 / in);
}

double he_normal_stddev(std::int64_t fan_in) {
  return std::sqrt(2.0 / static_cast<double>(fan_in));
}

double he_normal_sampler_sigma(std::int64_t fan_in) {
  return he_normal_stddev(fan_in) / kCutNormalStddev;
}

void initialize_tensor(const PlanParameter& parameter, std::uint64_t seed, std::uint32_t tensor_index,
                       std::span<float> values) {
  assert(static_cast<std::int64_t>(values.size()) == parameter.elements);
  const base::PhiloxKey key = key_of(seed, tensor_index);
  switch (parameter.initializer) {
    case InitializerKind::kZeros:
      std::ranges::fill(values, 0.0f);
      return;
    case InitializerKind::kOnes:
      std::ranges::fill(values, 1.0f);
      return;
    case InitializerKind::kHeNormal: {
      const double sigma = he_normal_sampler_sigma(parameter.fan_in);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(sigma * cut_normal(key, i));
      return;
    }
    case InitializerKind::kHeUniform:
    case InitializerKind::kGlorotUniform:
      fill_uniform(values, key, uniform_limit(parameter.initializer, parameter.fan_in, parameter.fan_out));
      return;
  }
}

void initialize_parameters(const Plan& plan, std::uint64_t seed, std::span<float> arena) {
  assert(arena.size() == plan.arena_bytes[0] / sizeof(float));
  std::ranges::fill(arena, 0.0f);
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const PlanParameter& p = plan.parameters[i];
    initialize_tensor(p, seed, static_cast<std::uint32_t>(i),
                      arena.subspan(p.offset_elements, static_cast<std::size_t>(p.elements)));
  }
  for (const PlanStatistic& s : plan.statistics)
    std::ranges::fill(arena.subspan(s.variance_offset_elements, static_cast<std::size_t>(s.channels)), 1.0f);
}

}  // namespace evenkeel::trainer
