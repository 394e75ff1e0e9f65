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
  EXPECT_NE(error_of(model({layer("flatten"), layer("conv2d")})).find("\"conv2d\" is not known"),
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
