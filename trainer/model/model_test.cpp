#include "trainer/model/model.h"

#include <gtest/gtest.h>

#include "trainer/graph/plan.h"

namespace evenkeel::trainer {
namespace {

contract::LayerSpec layer(const std::string& type, int units = 0) {
  contract::LayerSpec spec;
  spec.type = type;
  spec.units = units;
  return spec;
}

contract::ModelSpec model(std::vector<contract::LayerSpec> layers) {
  contract::ModelSpec spec;
  spec.layers = std::move(layers);
  return spec;
}

std::string error_of(const contract::ModelSpec& spec, int classes = 10) {
  const auto graph = build_model(spec, {28, 28}, classes);
  if (graph.ok()) return "no error";
  EXPECT_EQ(graph.error().code, base::ErrorCode::kInvalidInput);
  return graph.error().message;
}

TEST(Model, the_mlp_preset_has_its_published_size) {
  contract::ModelSpec spec;
  spec.preset = "mlp";
  const auto graph = build_model(spec, {28, 28}, 10);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->parameter_count(), 669706);
  const Plan plan = compile_plan(*graph, 128, PlanMode::kTraining, {}).value();
  ASSERT_EQ(plan.parameters.size(), 6u);
  EXPECT_EQ(plan.parameters[0].name, "dense_1.kernel");
  EXPECT_EQ(plan.parameters[0].shape, (Shape{784, 512}));
  EXPECT_EQ(plan.parameters[5].name, "dense_3.bias");
  EXPECT_EQ(plan.parameters[5].shape, (Shape{10}));
}

Graph preset_graph(const std::string& name, const Shape& sample, int classes) {
  contract::ModelSpec spec;
  spec.preset = name;
  auto graph = build_model(spec, sample, classes);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? *graph : Graph();
}

TEST(Model, every_preset_has_its_published_number_of_parameters) {
  EXPECT_EQ(preset_graph("lenet", {28, 28, 1}, 10).parameter_count(), 61706);
  EXPECT_EQ(preset_graph("resnet20", {32, 32, 3}, 10).parameter_count(), 269722);
  EXPECT_EQ(preset_graph("resnet50", {224, 224, 3}, 1000).parameter_count(), 25557032);
  EXPECT_EQ(preset_graph("resnet50", {224, 224, 3}, 5).parameter_count(), 23518277);
}

TEST(Model, resnet50_has_its_published_multiply_adds_and_running_statistics) {
  const Graph graph = preset_graph("resnet50", {224, 224, 3}, 1000);
  const Plan plan = compile_plan(graph, 1, PlanMode::kTraining, {}).value();
  std::int64_t flop = 0;
  for (const PlanStep& step : plan.steps) {
    if (step.op == OpKind::kConv2d || step.op == OpKind::kLinear) flop += step.flop;
  }
  constexpr std::int64_t kBiasOfTheLastLayer = 1000;
  EXPECT_EQ((flop - kBiasOfTheLastLayer) / 2, 4089184256);
  std::int64_t statistics = 0;
  for (const PlanStatistic& s : plan.statistics) statistics += 2 * s.channels;
  EXPECT_EQ(statistics, 53120);
}

TEST(Model, resnet_blocks_become_one_pass_of_batch_norm_sum_and_relu) {
  const Plan plan =
      compile_plan(preset_graph("resnet20", {32, 32, 3}, 10), 4, PlanMode::kTraining, {}).value();
  int fused = 0, adds = 0, relus = 0;
  for (const PlanStep& step : plan.steps) {
    if (step.phase != Phase::kForward) continue;
    fused += step.op == OpKind::kBatchNorm && step.attributes.residual && step.attributes.relu;
    adds += step.op == OpKind::kAdd;
    relus += step.op == OpKind::kRelu;
  }
  EXPECT_EQ(fused, 9);
  EXPECT_EQ(adds, 0);
  EXPECT_EQ(relus, 0);
}

TEST(Model, layers_name_their_inputs_and_errors_name_the_missing_ones) {
  auto first = layer("flatten");
  first.name = "f";
  auto left = layer("dense", 4), right = layer("dense", 4), sum = layer("add"), last = layer("dense", 10);
  left.name = "left", right.name = "right", sum.name = "sum";
  left.inputs = right.inputs = {"f"};
  sum.inputs = {"left", "right"};
  EXPECT_EQ(build_model(model({first, left, right, sum, last}), {4, 4}, 10).value().parameter_count(),
            2 * (16 * 4 + 4) + 4 * 10 + 10);
  sum.inputs = {"left", "rihgt"};
  EXPECT_NE(
      error_of(model({first, left, right, sum, last})).find("sum: its input \"rihgt\" is no layer before it"),
      std::string::npos);
  EXPECT_NE(error_of(model({first, left, right, last})).find("left: no other layer reads its output"),
            std::string::npos);
  sum.inputs = {"left"};
  EXPECT_NE(error_of(model({first, left, sum, last})).find("add takes 2 inputs"), std::string::npos);
}

TEST(Model, batch_norm_takes_the_numbers_of_its_convention_unless_it_has_its_own) {
  auto norm = layer("batchNorm");
  const auto attributes = [&](contract::OptimizerConvention convention) {
    return build_model(model({norm, layer("flatten"), layer("dense", 2)}), {1, 1, 3}, 2, convention)
        .value()
        .nodes[0]
        .attributes;
  };
  EXPECT_EQ(attributes(contract::OptimizerConvention::kPyTorch).epsilon, 1e-5);
  EXPECT_EQ(attributes(contract::OptimizerConvention::kPyTorch).momentum, 0.1);
  EXPECT_TRUE(attributes(contract::OptimizerConvention::kPyTorch).unbiased);
  EXPECT_EQ(attributes(contract::OptimizerConvention::kKeras).epsilon, 1e-3);
  EXPECT_DOUBLE_EQ(attributes(contract::OptimizerConvention::kKeras).momentum, 0.01);
  EXPECT_FALSE(attributes(contract::OptimizerConvention::kKeras).unbiased);
  norm.epsilon = 0.5;
  norm.momentum = 0.25;
  EXPECT_EQ(attributes(contract::OptimizerConvention::kKeras).epsilon, 0.5);
  EXPECT_EQ(attributes(contract::OptimizerConvention::kKeras).momentum, 0.25);
}

TEST(Model, layers_get_names_by_type_and_place) {
  const auto layers =
      expand_layers(model({layer("flatten"), layer("dense", 5), layer("relu"), layer("dense", 10)}), 10);
  ASSERT_TRUE(layers.ok());
  EXPECT_EQ((*layers)[1].name, "dense_1");
  EXPECT_EQ((*layers)[2].name, "relu_1");
  EXPECT_EQ((*layers)[3].name, "dense_2");
}

TEST(Model, activation_of_a_dense_layer_equals_a_relu_layer) {
  auto with = layer("dense", 5);
  with.activation = "relu";
  const Plan a =
      compile_plan(build_model(model({layer("flatten"), with, layer("dense", 10)}), {4, 4}, 10).value(), 2,
                   PlanMode::kTraining, {})
          .value();
  const Plan b =
      compile_plan(
          build_model(model({layer("flatten"), layer("dense", 5), layer("relu"), layer("dense", 10)}), {4, 4},
                      10)
              .value(),
          2, PlanMode::kTraining, {})
          .value();
  EXPECT_EQ(a.steps.size(), b.steps.size());
  EXPECT_EQ(a.flop, b.flop);
}

TEST(Model, errors_name_the_layer_the_value_and_the_shapes) {
  EXPECT_NE(
      error_of(model({layer("dense", 10)})).find("dense_1: dense takes (N, features), but gets (N, 28, 28)"),
      std::string::npos);
  EXPECT_NE(error_of(model({layer("flatten"), layer("dense", 0)})).find("units is 0"), std::string::npos);
  EXPECT_NE(error_of(model({layer("flatten"), layer("conv3d")})).find("\"conv3d\" is not known"),
            std::string::npos);
  EXPECT_NE(error_of(model({layer("flatten"), layer("dense", 9)}))
                .find("gives (N, 9), but the data set has 10 classes"),
            std::string::npos);
  EXPECT_NE(error_of(model({layer("flatten")})).find("anything to learn"), std::string::npos);
  EXPECT_NE(error_of(model({})).find("no layers"), std::string::npos);
  auto named = layer("dense", 10);
  named.name = "head";
  EXPECT_NE(error_of(model({layer("flatten"), named, named})).find("head: two layers"), std::string::npos);
  auto tanh = layer("dense", 10);
  tanh.activation = "tanh";
  EXPECT_NE(error_of(model({layer("flatten"), tanh})).find("\"tanh\""), std::string::npos);
  contract::ModelSpec preset;
  preset.preset = "vgg";
  EXPECT_NE(error_of(preset).find("\"vgg\""), std::string::npos);
}

TEST(Model, more_outputs_than_classes_are_fine) {
  EXPECT_TRUE(build_model(model({layer("flatten"), layer("dense", 5)}), {1, 1}, 1).ok());
}

TEST(Model, says_how_many_classes_it_fixes) {
  contract::ModelSpec preset;
  preset.preset = "mlp";
  EXPECT_EQ(output_classes(preset), 0);
  preset.num_classes = 7;
  EXPECT_EQ(output_classes(preset), 7);
  EXPECT_EQ(output_classes(model({layer("flatten"), layer("dense", 5), layer("relu")})), 5);
}

}  // namespace
}  // namespace evenkeel::trainer
