// Initial values of parameters: Philox keyed by (seed, purpose, index of the tensor in the model), so they
// depend on no rank, thread or layout. Pure. Formulas and golden values: fans and limits of He and Glorot.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/graph/plan.h"

namespace evenkeel::trainer {

// Half-width of the uniform distribution: sqrt(6 / fan_in) for He, sqrt(6 / (fan_in + fan_out)) for Glorot.
double uniform_limit(InitializerKind kind, std::int64_t fan_in, std::int64_t fan_out);
// He normal: the standard deviation that the values have, and the sigma that the sampler must use, because
// cutting at two sigma narrows a normal distribution to 0.8796 of its width.
double he_normal_stddev(std::int64_t fan_in);
double he_normal_sampler_sigma(std::int64_t fan_in);

// One tensor. tensor_index: place in Plan::parameters.
void initialize_tensor(const PlanParameter& parameter, std::uint64_t seed, std::uint32_t tensor_index,
                       std::span<float> values);
// Arena 1 as a whole, running statistics included (mean 0, variance 1); padding becomes zero. REQUIRES:
// arena.size() == plan.arena_bytes[0] / sizeof(float).
void initialize_parameters(const Plan& plan, std::uint64_t seed, std::span<float> arena);

}  // namespace evenkeel::trainer
