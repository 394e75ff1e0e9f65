// Every operator of images against its naive twin, the twins against finite differences: odd sizes, strides,
// pads, groups, dilation, fan-out, batch 1, all statistics.
#include "trainer/graph/operators.h"

#include <algorithm>
#include <functional>

#include "trainer/backend/cpu/engine_fixture.h"

namespace evenkeel::trainer {
namespace {

using testing::expect_agrees_with_twin;
using testing::expect_twin_agrees_with_finite_differences;

// Appends to a graph whose images come out of a 1x1 convolution, so that gradients flow through what is
// tested.
struct Case {
  std::string name;
  Shape sample;
  std::function<TensorId(Graph&, TensorId)> body;
};

Window window(std::int64_t size, std::int64_t stride = 1, std::int64_t pad = 0) {
  Window w;
  w.height = w.width = size;
  w.stride_h = w.stride_w = stride;
  w.pad_top = w.pad_left = w.pad_bottom = w.pad_right = pad;
  return w;
}

TensorId conv(Graph& g, const std::string& name, TensorId x, std::int64_t filters, const Window& w,
              std::int64_t groups = 1, Bias bias = Bias::kNone, Padding padding = Padding::kExplicit) {
  ConvOptions options;
  options.filters = filters;
  options.window = w;
  options.groups = groups;
  options.bias = bias;
  options.padding = padding;
  return add_conv2d(g, name, x, options).value();
}

TensorId norm(Graph& g, const std::string& name, TensorId x, bool unbiased = true) {
  return add_batch_norm(g, name, x, {0.1, 1e-5, unbiased}).value();
}

Graph graph_of(const Case& c) {
  Graph g;
  TensorId x = add_input(g, c.sample).value();
  if (c.sample.size() == 3) x = conv(g, "first", x, 4, window(1), 1, Bias::kZeros);
  x = c.body(g, x);
  if (g.at(x).shape.size() != 2) x = add_flatten(g, "flat", x).value();
  (void)add_linear(g, "last", x, 3, Bias::kZeros, InitializerKind::kHeNormal).value();
  return g;
}

std::vector<Case> cases() {
  Window uneven;
  uneven.height = 3, uneven.width = 5, uneven.stride_w = 2, uneven.pad_bottom = 2, uneven.pad_left = 1;
  Window dilated = window(3, 1, 2);
  dilated.dilation_h = dilated.dilation_w = 2;
  return {
      {"conv", {5, 7, 2}, [](Graph& g, TensorId x) { return conv(g, "c", x, 5, window(3, 1, 1)); }},
      {"conv_bias_stride",
       {7, 5, 3},
       [](Graph& g, TensorId x) { return conv(g, "c", x, 6, window(3, 2, 1), 1, Bias::kZeros); }},
      {"conv_relu",
       {6, 6, 1},
       [](Graph& g, TensorId x) {
         return add_relu(g, "c", conv(g, "c", x, 16, window(3, 1, 1), 1, Bias::kZeros)).value();
       }},
      {"conv_uneven", {6, 9, 1}, [uneven](Graph& g, TensorId x) { return conv(g, "c", x, 3, uneven); }},
      {"conv_dilated", {9, 8, 1}, [dilated](Graph& g, TensorId x) { return conv(g, "c", x, 3, dilated); }},
      {"conv_groups", {5, 5, 2}, [](Graph& g, TensorId x) { return conv(g, "c", x, 6, window(3, 1, 1), 2); }},
      {"conv_depthwise",
       {5, 5, 2},
       [](Graph& g, TensorId x) { return conv(g, "c", x, 4, window(3, 1, 1), 4, Bias::kZeros); }},
      {"conv_same",
       {5, 6, 1},
       [](Graph& g, TensorId x) { return conv(g, "c", x, 3, window(4, 3), 1, Bias::kNone, Padding::kSame); }},
      {"conv_as_wide_as_the_image",
       {3, 3, 1},
       [](Graph& g, TensorId x) { return conv(g, "c", x, 2, window(3)); }},
      {"conv_32_channels",
       {4, 4, 3},
       [](Graph& g, TensorId x) {
         return conv(g, "d", conv(g, "c", x, 32, window(3, 1, 1)), 32, window(3, 2, 1));
       }},
      {"max_pool",
       {6, 6, 1},
       [](Graph& g, TensorId x) {
         return add_pool(g, "p", x, PoolKind::kMax, window(2, 2), Padding::kExplicit).value();
       }},
      {"max_pool_overlapping",
       {7, 5, 1},
       [](Graph& g, TensorId x) {
         return add_pool(g, "p", x, PoolKind::kMax, window(3, 2, 1), Padding::kExplicit).value();
       }},
      {"avg_pool",
       {7, 5, 1},
       [](Graph& g, TensorId x) {
         return add_pool(g, "p", x, PoolKind::kAvg, window(3, 2, 1), Padding::kExplicit).value();
       }},
      {"global_avg_pool",
       {5, 3, 1},
       [](Graph& g, TensorId x) { return add_global_avg_pool(g, "p", x).value(); }},
      {"dropout", {3, 3, 1}, [](Graph& g, TensorId x) { return add_dropout(g, "d", x, 0.4).value(); }},
      {"reshape",
       {4, 3, 1},
       [](Graph& g, TensorId x) {
         return conv(g, "c", add_reshape(g, "r", x, {3, 4, 4}).value(), 2, window(3));
       }},
      {"shortcut", {5, 6, 1}, [](Graph& g, TensorId x) { return add_shortcut(g, "s", x, 9, 2, 2).value(); }},
      {"norm", {3, 4, 1}, [](Graph& g, TensorId x) { return norm(g, "n", x); }},
      {"norm_relu_keras",
       {3, 4, 1},
       [](Graph& g, TensorId x) { return add_relu(g, "n", norm(g, "n", x, false)).value(); }},
      {"norm_of_rows",
       {6},
       [](Graph& g, TensorId x) {
         return norm(g, "n", add_linear(g, "d", x, 5, Bias::kZeros, InitializerKind::kHeNormal).value());
       }},
      {"norm_of_the_input", {6}, [](Graph& g, TensorId x) { return norm(g, "n", x); }},
      {"norm_of_one_value", {1, 1, 1}, [](Graph& g, TensorId x) { return norm(g, "n", x); }},
      {"norm_200_channels",
       {2, 2, 1},
       [](Graph& g, TensorId x) { return norm(g, "n", conv(g, "c", x, 200, window(1))); }},
      {"residual_identity",
       {4, 4, 1},
       [](Graph& g, TensorId x) {
         const TensorId y = norm(
             g, "n2",
             conv(g, "c2", add_relu(g, "n1", norm(g, "n1", conv(g, "c1", x, 4, window(3, 1, 1)))).value(), 4,
                  window(3, 1, 1)));
         return add_relu(g, "sum", add_sum(g, "sum", y, x).value()).value();
       }},
      {"residual_projection",
       {5, 5, 1},
       [](Graph& g, TensorId x) {
         const TensorId y = norm(g, "n1", conv(g, "c1", x, 6, window(3, 2, 1)));
         const TensorId z = norm(g, "n2", conv(g, "c2", x, 6, window(1, 2)));
         return add_relu(g, "sum", add_sum(g, "sum", y, z).value()).value();
       }},
      {"residual_without_relu",
       {4, 4, 1},
       [](Graph& g, TensorId x) {
         return add_sum(g, "sum", x, norm(g, "n1", conv(g, "c1", x, 4, window(3, 1, 1)))).value();
       }},
      {"residual_shortcut_twice",
       {4, 4, 1},
       [](Graph& g, TensorId x) {
         const TensorId a = norm(g, "n1", conv(g, "c1", x, 8, window(3, 2, 1)));
         const TensorId s =
             add_relu(g, "s1", add_sum(g, "s1", a, add_shortcut(g, "k", x, 8, 2, 2).value()).value()).value();
         return add_relu(g, "s2",
                         add_sum(g, "s2", norm(g, "n2", conv(g, "c2", s, 8, window(3, 1, 1))), s).value())
             .value();
       }},
      {"three_readers",
       {3, 3, 1},
       [](Graph& g, TensorId x) {
         const TensorId a = add_sum(g, "s1", conv(g, "c1", x, 4, window(1)), x).value();
         return add_sum(g, "s2", a, add_relu(g, "r", x).value()).value();
       }},
      {"sum_with_itself", {3, 3, 1}, [](Graph& g, TensorId x) { return add_sum(g, "s", x, x).value(); }},
      {"sum_then_relu",
       {3, 3, 1},
       [](Graph& g, TensorId x) {
         return add_relu(g, "s", add_sum(g, "s", conv(g, "c", x, 4, window(1)), x).value()).value();
       }},
  };
}

TEST(Operators, agree_with_their_naive_twins) {
  for (const Case& c : cases()) {
    for (const std::int64_t batch : {1, 2, 5}) {
      for (const StatisticsMode mode :
           {StatisticsMode::kGhost, StatisticsMode::kLocal, StatisticsMode::kSync}) {
        SCOPED_TRACE(c.name + " batch " + std::to_string(batch) + " statistics " +
                     std::to_string(static_cast<int>(mode)));
        EngineOptions options;
        options.threads = 1 + static_cast<int>(batch % 2);
        options.plan.statistics = mode;
        options.plan.group = 2;
        options.plan.label_smoothing = batch == 2 ? 0.1 : 0;
        expect_agrees_with_twin(graph_of(c), batch, options, 1e-4);
      }
    }
  }
}

TEST(Operators, twins_agree_with_finite_differences) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    PlanOptions options;
    options.group = 2;
    options.label_smoothing = 0.2;
    // Of [-1, 1] values the loss has derivatives of order 1; kinks of ReLU and maxima are not hit by chance.
    expect_twin_agrees_with_finite_differences(graph_of(c), 3, options, 2e-5);
  }
}

TEST(Operators, evaluation_uses_running_statistics_and_no_dropout) {
  Graph g;
  TensorId x = add_input(g, {2, 2, 1}).value();
  x = norm(g, "n", x);
  x = add_dropout(g, "d", x, 0.5).value();
  x = add_flatten(g, "flat", x).value();
  (void)add_linear(g, "last", x, 2, Bias::kNone, InitializerKind::kHeNormal).value();
  auto engine = Engine::create(g, 2, {}).value();
  const Plan plan = compile_plan(g, 2, PlanMode::kEvaluation, {}).value();
  const testing::Problem p = testing::problem_for(plan, 1);
  testing::load(*engine, p);
  const PlanStatistic& s = engine->plan().statistics.at(0);
  engine->parameter_arena()[s.mean_offset_elements] = 0.25f;
  engine->parameter_arena()[s.variance_offset_elements] = 4.0f;
  const LossSums have = (*engine->executor(2, PlanMode::kEvaluation))->forward(p.input()).value();
  const ReferenceResult want = run_reference(plan, p.parameters, p.reference_input(), {{0.25}, {4.0}});
  EXPECT_NEAR(have.loss, want.sums.loss, 1e-6);
}

// The golden of one channel: PyTorch's and Keras's y(1) of [1, 2, 3, 4].
TEST(BatchNorm, has_the_golden_values_of_both_conventions) {
  for (const bool keras : {false, true}) {
    Graph g;
    TensorId x =
        add_batch_norm(g, "n", add_input(g, {1, 1, 1}).value(),
                       keras ? BatchNormOptions{0.01, 1e-3, false} : BatchNormOptions{0.1, 1e-5, true})
            .value();
    x = add_flatten(g, "flat", x).value();
    (void)add_linear(g, "last", x, 1, Bias::kNone, InitializerKind::kHeNormal).value();
    EngineOptions options;
    options.plan.statistics = StatisticsMode::kLocal;
    auto engine = Engine::create(g, 4, options).value();
    const Plan& plan = engine->plan();
    for (const PlanParameter& parameter : plan.parameters)
      engine->parameters()[parameter.offset_elements] = parameter.name == "n.beta" ? 0.0f : 1.0f;
    Executor& executor = **engine->executor(4, PlanMode::kTraining);
    const std::vector<float> features = {1, 2, 3, 4};
    const std::vector<std::int32_t> labels(4, 0);
    // One class: the loss and its gradient are zero, so the logits keep what the layer gave.
    ASSERT_TRUE(executor.forward({.features = features, .labels = labels}).ok());
    for (const PlanTensor& t : plan.tensors) {
      if (t.name != "n.out") continue;
      const auto y = executor.tensor(static_cast<TensorId>(&t - plan.tensors.data()));
      EXPECT_NEAR(static_cast<double>(y[0]), keras ? -1.3411044520 : -1.3416354200, 2e-6);
    }
    const float* sums = engine->gradient_arena().data() + plan.statistics.at(0).sums_offset_elements;
    EXPECT_FLOAT_EQ(sums[0] / sums[2], 2.5f);
    EXPECT_FLOAT_EQ(sums[1] / sums[3], keras ? 1.25f : 1.6666666f);
  }
}

TEST(BatchNorm, a_single_value_gives_a_finite_result_and_no_variance) {
  Graph g;
  TensorId x = add_batch_norm(g, "n", add_input(g, {1, 1, 1}).value(), {}).value();
  x = add_flatten(g, "flat", x).value();
  (void)add_linear(g, "last", x, 2, Bias::kNone, InitializerKind::kHeNormal).value();
  auto engine = Engine::create(g, 1, {}).value();
  Executor& executor = **engine->executor(1, PlanMode::kTraining);
  const std::vector<float> features = {3};
  const std::vector<std::int32_t> labels = {1};
  EXPECT_TRUE(std::isfinite(executor.forward({.features = features, .labels = labels}).value().loss));
  ASSERT_TRUE(executor.backward(nullptr).ok());
  const float* sums = engine->gradient_arena().data() + engine->plan().statistics.at(0).sums_offset_elements;
  EXPECT_EQ(sums[2], 1.0f);
  EXPECT_EQ(sums[3], 0.0f);
  for (const float value : engine->gradient_arena()) EXPECT_TRUE(std::isfinite(value));
}

TEST(BatchNorm, statistics_of_all_ranks_are_those_of_the_whole_batch) {
  Graph g;
  TensorId x = conv(g, "c", add_input(g, {3, 3, 1}).value(), 4, window(1), 1, Bias::kZeros);
  x = add_relu(g, "n", norm(g, "n", x)).value();
  x = add_flatten(g, "flat", x).value();
  (void)add_linear(g, "last", x, 3, Bias::kZeros, InitializerKind::kHeNormal).value();
  EngineOptions options;
  options.plan.statistics = StatisticsMode::kSync;
  auto whole = Engine::create(g, 5, options).value();
  const testing::Problem p = testing::problem_for(whole->plan(), 9);
  testing::load(*whole, p);
  Executor& all = **whole->executor(5, PlanMode::kTraining);
  ASSERT_TRUE(all.forward(p.input()).ok());
  ASSERT_TRUE(all.backward(nullptr).ok());
  const std::vector<float> expected(whole->gradient_arena().begin(), whole->gradient_arena().end());

  // Ranks with 3, 2 and 0 samples, run in lockstep: the exchange of each call is replayed until it is
  // complete.
  constexpr std::int64_t kShares[] = {3, 2, 0};
  std::vector<std::vector<double>> complete;  // sums over ranks, call by call
  std::vector<float> total(expected.size(), 0.0f);
  for (bool more = true; more;) {
    more = false;
    std::vector<double> sum;
    std::ranges::fill(total, 0.0f);
    std::int64_t first = 0;
    for (const std::int64_t share : kShares) {
      auto rank = Engine::create(g, std::max<std::int64_t>(share, 1), options).value();
      testing::load(*rank, p);
      std::size_t call = 0;
      rank->set_statistics_exchange([&](std::span<double> values) -> base::Status {
        if (call < complete.size()) {
          std::ranges::copy(complete[call++], values.begin());
          return {};
        }
        if (sum.empty()) sum.assign(values.size(), 0.0);
        for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
        more = true;
        return base::Error{base::ErrorCode::kAborted, "not complete yet"};
      });
      Executor& executor = **rank->executor(share, PlanMode::kTraining);
      StepInput input = p.input();
      input.features =
          input.features.subspan(static_cast<std::size_t>(first * 9), static_cast<std::size_t>(share * 9));
      input.labels = input.labels.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(share));
      first += share;
      if (executor.forward(input).ok() && executor.backward(nullptr).ok()) {
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += rank->gradient_arena()[i];
      }
    }
    if (more) complete.push_back(sum);
  }
  EXPECT_EQ(complete.size(), 3u);  // mean, variance, backward
  for (std::size_t i = 0; i < total.size(); ++i) EXPECT_NEAR(total[i], expected[i], 1e-4) << i;
}

TEST(Dropout, keeps_its_share_scales_it_and_depends_on_the_sample_alone) {
  Graph g;
  TensorId x = add_dropout(g, "d", add_input(g, {1000}).value(), 0.25).value();
  (void)add_linear(g, "last", x, 1, Bias::kNone, InitializerKind::kHeNormal).value();
  auto engine = Engine::create(g, 2, {}).value();
  const std::vector<float> ones(2000, 1.0f);
  const std::vector<std::int32_t> labels(2, 0);
  const auto masks = [&](std::vector<std::int64_t> ids, std::uint64_t epoch) {
    Executor& executor = **engine->executor(2, PlanMode::kTraining);
    EXPECT_TRUE(
        executor.forward({.features = ones, .labels = labels, .ids = ids, .epoch = epoch, .seed = 5}).ok());
    const Plan& plan = executor.plan();
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
      if (plan.tensors[i].name == "d.out") {
        const auto y = executor.tensor(static_cast<TensorId>(i));
        return std::vector<float>(y.begin(), y.end());
      }
    }
    return std::vector<float>();
  };
  const std::vector<float> both = masks({17, 4}, 1);
  ASSERT_EQ(both.size(), 2000u);
  const auto kept = std::ranges::count_if(both, [](float v) { return v != 0.0f; });
  EXPECT_NEAR(static_cast<double>(kept) / 2000, 0.75, 0.03);
  for (const float v : both) EXPECT_TRUE(v == 0.0f || std::abs(v - 1 / 0.75f) < 1e-6f);
  const std::vector<float> swapped = masks({4, 17}, 1);
  EXPECT_TRUE(std::equal(both.begin(), both.begin() + 1000, swapped.begin() + 1000));
  EXPECT_NE(both, masks({17, 4}, 2));
}

TEST(Operators, name_layer_and_shapes_where_they_cannot_be) {
  Graph g;
  const TensorId x = add_input(g, {4, 4, 3}).value();
  const auto message = [](const base::Result<TensorId>& result) {
    return result.ok() ? std::string() : result.error().message;
  };
  ConvOptions options;
  options.window = window(7);
  EXPECT_NE(message(add_conv2d(g, "c", x, options)).find("larger than the image of 4"), std::string::npos);
  options.window = window(3);
  options.groups = 2;
  EXPECT_NE(message(add_conv2d(g, "c", x, options)).find("3 channels in"), std::string::npos);
  EXPECT_NE(message(add_reshape(g, "r", x, {7})).find("48 values a sample cannot become 7"),
            std::string::npos);
  EXPECT_NE(message(add_shortcut(g, "s", x, 2, 1, 1)).find("none are dropped"), std::string::npos);
  const TensorId flat = add_flatten(g, "f", x).value();
  EXPECT_NE(message(add_conv2d(g, "c", flat, {})).find("(N, 48)"), std::string::npos);
  EXPECT_NE(message(add_sum(g, "a", x, flat)).find("(N, 4, 4, 3) and (N, 48)"), std::string::npos);
  Window pad = window(2);
  pad.pad_top = 2;
  EXPECT_NE(
      message(add_pool(g, "p", x, PoolKind::kMax, pad, Padding::kExplicit)).find("smaller than its window"),
      std::string::npos);
}

}  // namespace
}  // namespace evenkeel::trainer
