// A plan as people read it.
#include <cstdio>
#include <string>

#include "trainer/graph/plan.h"

namespace evenkeel::trainer {
namespace {

template <class... Args>
std::string line(const char* format, Args... args) {
  const int size = std::snprintf(nullptr, 0, format, args...);
  std::string text(static_cast<std::size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), format, args...);
  text.back() = '\n';
  return text;
}

const char* arena_name(Arena arena) {
  switch (arena) {
    case Arena::kParameters:
      return "parameters";
    case Arena::kComputeCopy:
      return "compute copy";
    case Arena::kGradients:
      return "gradients";
    case Arena::kOptimizer:
      return "optimizer";
    case Arena::kActivations:
      return "activations";
    case Arena::kExternal:
      return "input";
  }
  return "?";
}

unsigned long long ull(std::uint64_t value) {
  return value;
}
long long ll(std::int64_t value) {
  return value;
}

std::string arenas_text(const Plan& plan) {
  std::string text = "arenas\n";
  for (int i = 0; i < kArenaCount; ++i) {
    text += line("  %d %-13s %14llu bytes", i + 1, arena_name(static_cast<Arena>(i)),
                 ull(plan.arena_bytes[static_cast<std::size_t>(i)]));
  }
  // Kernels are chosen when an engine is made; before that nobody knows what they need.
  text += plan.workspace_bytes > 0 ? line("    of which workspace %9llu bytes", ull(plan.workspace_bytes))
                                   : std::string("    workspace of the kernels comes on top, once they are chosen\n");
  text += line("  total           %14llu bytes", ull(plan.total_bytes()));
  return text;
}

std::string buckets_text(const Plan& plan) {
  std::string text = "buckets (slices of the gradient arena, in order of completion)\n";
  for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
    const Bucket& b = plan.buckets[i];
    text +=
        line("  %3zu  bytes %12llu .. %12llu  (%llu)  ready after step %d", i,
             ull(b.offset_elements * sizeof(float)), ull((b.offset_elements + b.elements) * sizeof(float)),
             ull(b.elements * sizeof(float)), b.ready_after_step);
  }
  return text;
}

std::string tensors_text(const Plan& plan) {
  std::string text = "tensors\n";
  for (const PlanTensor& t : plan.tensors) {
    if (t.first_step < 0 && t.last_step < 0) continue;  // fused away
    text += line("  %-26s %-16s %-12s offset %10llu  bytes %10llu  steps %d..%d", t.name.c_str(),
                 to_text(t.shape).c_str(), arena_name(t.arena), ull(t.offset_bytes), ull(t.size_bytes),
                 t.first_step, t.last_step);
  }
  return text;
}

std::string steps_text(const Plan& plan) {
  std::string text = "steps\n";
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& s = plan.steps[i];
    text += line("  %3zu %-8s %-22s %-14s %14lld FLOP %12lld bytes%s", i,
                 s.phase == Phase::kForward ? "forward" : "backward", op_name(s.op), s.layer.c_str(),
                 ll(s.flop), ll(s.moved_bytes),
                 ((s.attributes.residual ? std::string("  +Add") : std::string()) +
                  (s.attributes.relu ? "  +ReLU" : ""))
                     .c_str());
  }
  return text;
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string text = line("plan: %s, local batch %lld, %lld parameters, %lld features in, %lld classes",
                          plan.mode == PlanMode::kTraining ? "training" : "evaluation", ll(plan.batch),
                          ll(plan.parameter_count()), ll(plan.input_features), ll(plan.classes));
  text += line("step: %lld FLOP, %lld bytes moved", ll(plan.flop), ll(plan.moved_bytes));
  return text + arenas_text(plan) + buckets_text(plan) + tensors_text(plan) + steps_text(plan);
}

}  // namespace evenkeel::trainer
