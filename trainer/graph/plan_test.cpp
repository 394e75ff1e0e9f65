#include "trainer/graph/plan.h"

#include <gtest/gtest.h>

#include "trainer/graph/operators.h"
#include "trainer/graph/plan_hash.h"

namespace evenkeel::trainer {
namespace {

// flatten, (dense + relu) for each hidden size, dense 10.
Graph mlp(const Shape& sample, const std::vector<std::int64_t>& hidden) {
  Graph graph;
  TensorId x = add_flatten(graph, "flatten_1", add_input(graph, sample).value()).value();
  int n = 0;
  for (const std::int64_t units : hidden) {
    const std::string name = "dense_" + std::to_string(++n);
    x = add_linear(graph, name, x, units, Bias::kZeros, InitializerKind::kHeNormal).value();
    x = add_relu(graph, name, x).value();
  }
  (void)add_linear(graph, "dense_" + std::to_string(++n), x, 10, Bias::kZeros, InitializerKind::kHeNormal)
      .value();
  return graph;
}

Plan plan_of(const Graph& graph, std::int64_t batch, PlanMode mode = PlanMode::kTraining,
             PlanOptions options = {}) {
  return compile_plan(graph, batch, mode, options).value();
}

TEST(Plan, arenas_of_the_preset_have_the_expected_bytes) {
  const Plan plan = plan_of(mlp({28, 28}, {512, 512}), 128);
  EXPECT_EQ(plan.parameter_count(), 669706);
  const std::uint64_t padded = 4 * (669706 + 6);  // the last bias of 10 is padded to 16
  EXPECT_EQ(plan.arena_bytes[0], padded);
  EXPECT_EQ(plan.arena_bytes[1], 0u);
  EXPECT_EQ(plan.arena_bytes[2], padded);
  EXPECT_EQ(plan.arena_bytes[3], padded);
  // Two hidden activations and, in backward, the gradient of one of them at a time; the features are the
  // caller's.
  const std::uint64_t hidden = 128 * 512 * 4;
  EXPECT_LE(plan.arena_bytes[4], 4 * hidden);
  EXPECT_GE(plan.arena_bytes[4], 3 * hidden);
}

TEST(Plan, counts_flop_of_three_matrix_products_a_layer_less_one) {
  const Plan plan = plan_of(mlp({28, 28}, {512, 512}), 128);
  const std::int64_t layers[] = {784 * 512, 512 * 512, 512 * 10};
  const std::int64_t products = 2 * 128 * (2 * layers[0] + 3 * layers[1] + 3 * layers[2]);
  EXPECT_GE(plan.flop, products);
  EXPECT_LE(plan.flop, products + products / 100);
}

// The property that makes arena 5 right: no two tensors that are alive at the same step overlap, unless one
// is the other's view.
TEST(Plan, tensors_alive_together_never_overlap) {
  for (const auto& hidden :
       std::vector<std::vector<std::int64_t>>{{}, {7}, {512, 512}, {3, 900, 5, 64, 64, 1}}) {
    for (const PlanMode mode : {PlanMode::kTraining, PlanMode::kEvaluation}) {
      const Plan plan = plan_of(mlp({5, 3}, hidden), 33, mode);
      for (std::size_t a = 0; a < plan.tensors.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
          const PlanTensor &s = plan.tensors[a], &t = plan.tensors[b];
          if (s.arena != Arena::kActivations || t.arena != Arena::kActivations || s.first_step < 0 ||
              t.first_step < 0)
            continue;
          if (s.shares_with != kNoTensor || t.shares_with != kNoTensor) continue;
          const bool together = s.first_step <= t.last_step && t.first_step <= s.last_step;
          const bool overlap = s.offset_bytes < t.offset_bytes + t.size_bytes &&
                               t.offset_bytes < s.offset_bytes + s.size_bytes;
          EXPECT_FALSE(together && overlap) << s.name << " and " << t.name;
          EXPECT_LE(s.offset_bytes + s.size_bytes, plan.arena_bytes[4]);
        }
      }
    }
  }
}

TEST(Plan, in_place_sharing_never_destroys_what_a_later_step_reads) {
  const Plan plan = plan_of(mlp({5, 3}, {8, 8}), 4);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlanTensor& t = plan.tensors[i];
    if (t.shares_with == kNoTensor || t.arena == Arena::kExternal) continue;
    for (std::size_t s = static_cast<std::size_t>(t.first_step) + 1; s < plan.steps.size(); ++s) {
      for (const TensorId id : plan.steps[s].inputs) EXPECT_NE(id, t.shares_with) << t.name << " step " << s;
    }
  }
}

TEST(Plan, all_batches_and_modes_share_the_first_four_arenas) {
  const Graph graph = mlp({28, 28}, {512, 512});
  const Plan full = plan_of(graph, 128);
  for (const std::int64_t batch : {0, 1, 96, 1000}) {
    for (const PlanMode mode : {PlanMode::kTraining, PlanMode::kEvaluation}) {
      const Plan other = plan_of(graph, batch, mode);
      for (int arena = 0; arena < 4; ++arena) EXPECT_EQ(other.arena_bytes[arena], full.arena_bytes[arena]);
      for (std::size_t i = 0; i < full.parameters.size(); ++i) {
        EXPECT_EQ(other.parameters[i].offset_elements, full.parameters[i].offset_elements);
      }
    }
  }
  EXPECT_EQ(plan_of(graph, 0).arena_bytes[4], 0u);
}

TEST(Plan, gradients_lie_in_the_order_of_completion) {
  const Plan plan = plan_of(mlp({28, 28}, {512, 512}), 8);
  EXPECT_EQ(plan.parameters[4].name, "dense_3.kernel");
  EXPECT_EQ(plan.parameters[4].offset_elements, 0u);
  EXPECT_GT(plan.parameters[0].offset_elements, plan.parameters[2].offset_elements);
}

TEST(Buckets, tile_the_gradient_arena_and_are_ready_only_when_their_last_gradient_is) {
  for (const double mib : {0.0, 0.001, 0.3, 1.0, 25.0}) {
    PlanOptions options;
    options.bucket_mib = mib;
    const Plan plan = plan_of(mlp({28, 28}, {512, 512}), 8, PlanMode::kTraining, options);
    std::uint64_t at = 0;
    int step = 0;
    for (const Bucket& b : plan.buckets) {
      EXPECT_EQ(b.offset_elements, at);
      EXPECT_GT(b.elements, 0u);
      at += b.elements;
      EXPECT_GE(b.ready_after_step, step);
      step = b.ready_after_step;
      for (std::size_t s = static_cast<std::size_t>(step) + 1; s < plan.steps.size(); ++s) {
        for (const TensorId id : plan.steps[s].outputs) {
          const PlanTensor& t = plan.tensors[static_cast<std::size_t>(id)];
          if (t.arena != Arena::kGradients) continue;
          EXPECT_GE(t.offset_bytes / 4, at) << "the bucket holds what is not ready";
        }
      }
    }
    EXPECT_EQ(at * 4, plan.arena_bytes[2]);
  }
}

TEST(Buckets, default_is_about_a_megabyte_with_a_small_first) {
  const Plan plan = plan_of(mlp({28, 28}, {512, 512}), 128);
  ASSERT_GE(plan.buckets.size(), 3u);
  EXPECT_LT(plan.buckets[0].elements * 4, 64u << 10);
  for (const Bucket& b : plan.buckets) EXPECT_LE(b.elements * 4, 3u << 19);
  PlanOptions bad;
  bad.bucket_mib = -1;
  EXPECT_FALSE(compile_plan(mlp({4}, {}), 1, PlanMode::kTraining, bad).ok());
}

TEST(Plan, relu_is_fused_into_the_linear_before_it) {
  const Plan plan = plan_of(mlp({28, 28}, {512, 512}), 8, PlanMode::kEvaluation);
  int fused = 0;
  for (const PlanStep& step : plan.steps) {
    fused += step.attributes.relu;
    EXPECT_NE(step.op, OpKind::kRelu);
  }
  EXPECT_EQ(fused, 2);
}

TEST(Plan, no_gradient_of_the_input_is_computed) {
  const Plan plan = plan_of(mlp({28, 28}, {512}), 8);
  for (const PlanStep& step : plan.steps) {
    EXPECT_FALSE(step.op == OpKind::kLinearBackwardData && step.layer == "dense_1");
    EXPECT_NE(step.op, OpKind::kReshapeBackward);
  }
}

TEST(Plan, memory_is_checked_with_numbers) {
  const Plan plan = plan_of(mlp({28, 28}, {512, 512}), 128);
  EXPECT_TRUE(check_memory(plan, 0, 0, "").ok());
  EXPECT_TRUE(check_memory(plan, 0, 64 << 20, "cgroup").ok());
  const auto status = check_memory(plan, 60 << 20, 64 << 20, "cgroup");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("(cgroup) is 64 MiB"), std::string::npos) << status.error().message;
}

TEST(Plan, sizes_beyond_counting_are_errors) {
  Graph graph;
  const TensorId x = add_input(graph, {std::int64_t{1} << 40}).value();
  EXPECT_FALSE(
      add_linear(graph, "a", x, std::int64_t{1} << 24, Bias::kNone, InitializerKind::kHeNormal).ok());
  EXPECT_FALSE(compile_plan(mlp({28, 28}, {512}), std::int64_t{1} << 60, PlanMode::kTraining, {}).ok());
  EXPECT_FALSE(compile_plan(mlp({28, 28}, {512}), -1, PlanMode::kTraining, {}).ok());
}

TEST(Plan, prints_arenas_buckets_tensors_and_steps) {
  const std::string text = to_text(plan_of(mlp({28, 28}, {512, 512}), 128));
  for (const char* part : {"669706 parameters", "arenas", "gradients", "buckets", "dense_1.kernel",
                           "(784, 512)", "LinearBackwardWeights", "+ReLU"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(PlanHash, does_not_depend_on_the_local_batch) {
  const Graph graph = mlp({28, 28}, {64});
  EXPECT_EQ(layer_hashes(plan_of(graph, 1)), layer_hashes(plan_of(graph, 128)));
  EXPECT_EQ(plan_hash(layer_hashes(plan_of(graph, 1))).size(), 64u);
}

TEST(PlanHash, a_difference_is_named_by_layer) {
  const auto ours = layer_hashes(plan_of(mlp({28, 28}, {64, 32}), 8));
  const auto theirs = layer_hashes(plan_of(mlp({28, 28}, {63, 32}), 8));
  EXPECT_NE(plan_hash(ours), plan_hash(theirs));
  const std::string text = describe_difference(ours, theirs);
  EXPECT_NE(text.find("differ at layer dense_1"), std::string::npos) << text;
  EXPECT_NE(text.find("(784, 64)"), std::string::npos);
  EXPECT_NE(text.find("(784, 63)"), std::string::npos);
  EXPECT_EQ(describe_difference(ours, ours), "");
}

TEST(PlanHash, other_buckets_are_another_plan) {
  PlanOptions options;
  options.bucket_mib = 0.01;
  const Graph graph = mlp({28, 28}, {64});
  const auto text = describe_difference(layer_hashes(plan_of(graph, 1)),
                                        layer_hashes(plan_of(graph, 1, PlanMode::kTraining, options)));
  EXPECT_NE(text.find("buckets"), std::string::npos) << text;
}

}  // namespace
}  // namespace evenkeel::trainer
