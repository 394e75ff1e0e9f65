// spec.model: exactly one of preset, layers, onnx.
#include <map>
#include <set>
#include <string>

#include "contract/job/field_builder.h"
#include "contract/job/schema_parts.h"

namespace evenkeel::contract {
namespace {

bool has_items(const Json& self, const char* name) {
  return self.contains(name) && !self[name].empty();
}

FieldRule one_model_rule() {
  return {.cel =
              "[has(self.preset), has(self.layers) && size(self.layers) > 0, has(self.onnx)].filter(x, "
              "x).size() == 1",
          .message = "model needs exactly one of preset, layers or onnx",
          .holds = [](const Json& self, const Json&) {
            return (self.contains("preset") ? 1 : 0) + (has_items(self, "layers") ? 1 : 0) +
                       (self.contains("onnx") ? 1 : 0) ==
                   1;
          }};
}

FieldRule options_with_preset_rule() {
  return {.cel = "!has(self.options) || !has(self.options.numClasses) || has(self.preset)",
          .message = "options.numClasses is for presets; with layers the units of the last layer say it",
          .holds =
              [](const Json& self, const Json&) {
                return !base::child(self, "options").contains("numClasses") || self.contains("preset");
              },
          .field_path = ".options"};
}

FieldRule last_layer_rule() {
  return {.cel =
              "size(self) == 0 || (has(self[size(self) - 1].type) && self[size(self) - 1].type == 'dense' && "
              "!has(self[size(self) - 1].activation))",
          .message =
              "the last of layers must be dense without an activation: one unit for each class, softmax "
              "follows by itself",
          .holds = [](const Json& self, const Json&) {
            return self.empty() ||
                   (base::string_at(self.back(), "type") == "dense" && !self.back().contains("activation"));
          }};
}

FieldRule layer_members_rule() {
  return {.cel =
              "!has(self.type) ? true : self.type == 'dense' ? has(self.units) : !(has(self.units) || "
              "has(self.activation) || has(self.bias) || "
              "has(self.initializer))",
          .message =
              "layer {type}: dense needs units; units, activation, bias and initializer are for dense alone",
          .holds = [](const Json& self, const Json&) {
            if (base::string_at(self, "type") == "dense") return self.contains("units");
            for (const char* name : {"units", "activation", "bias", "initializer"}) {
              if (self.contains(name)) return false;
            }
            return true;
          }};
}

FieldRule layer_names_rule() {
  return {.cel = "self.all(a, !has(a.name) || self.filter(b, has(b.name) && b.name == a.name).size() == 1)",
          .message = "two layers have the same name; each name names one set of weights",
          .holds = [](const Json& self, const Json&) {
            std::set<std::string> names;
            for (const Json& layer : self) {
              if (layer.contains("name") && !names.insert(layer["name"].get<std::string>()).second)
                return false;
            }
            return true;
          }};
}

// A layer without a name is called <type>_<1-based count of that type>.
FieldRule layer_default_names_rule() {
  return {.cel = "",
          .message =
              "a layer is named like another layer's default name (dense_2 is the second dense layer); "
              "choose another name",
          .holds = [](const Json& self, const Json&) {
            std::map<std::string, int> count;
            std::set<std::string> given;
            std::set<std::string> made;
            for (const Json& layer : self) {
              const std::string type = base::string_at(layer, "type");
              const int index = ++count[type];
              if (layer.contains("name")) {
                given.insert(layer["name"].get<std::string>());
              } else {
                made.insert(type + "_" + std::to_string(index));
              }
            }
            for (const std::string& name : made) {
              if (given.contains(name)) return false;
            }
            return true;
          }};
}

Field layers_field() {
  Field item = object(
      "", "One layer.",
      {choice("type",
              "Kind of layer: dense (fully connected), flatten (rows of numbers from images) or relu.",
              {"dense", "flatten", "relu", "add", "concat"})
           .required()
           .only({"dense", "flatten", "relu"}),
       text("name",
            "Name of the layer's weights in checkpoints; its type and count where absent, e.g. dense_1.")
           .length(1, 63)
           .pattern("^[A-Za-z][A-Za-z0-9_]*$"),
       integer("units", "Outputs of a dense layer.", 1, 1048576),
       choice("activation", "What follows a dense layer at once; nothing where absent.", {"relu"}),
       boolean("bias", "Whether a dense layer adds a bias; true where absent."),
       choice("initializer", "Distribution of a dense layer's first weights; heNormal where absent.",
              {"heNormal", "heUniform", "glorotUniform"}),
       list("inputs", "Names of the layers that feed this one; the one before where absent.",
            text("", "Name of a layer.").length(1, 63), 16)
           .not_built()});
  item.rules.push_back(layer_members_rule());
  return list("layers", "The model as a chain of layers, first to last.", item, 64)
      .rule(last_layer_rule())
      .rule(layer_names_rule())
      .rule(layer_default_names_rule());
}

}  // namespace

Field model_field() {
  Field options =
      object("options", "Options of the preset.",
             {integer("numClasses", "Number of classes; as many as the data set has where absent or 0.", 0,
                      1000000)});
  Field onnx = object("onnx", "A model file in ONNX format.",
                      {text("path", "Path of the file inside the pod.").length(1, 512).required()});
  Field init_from =
      object("initFrom", "Weights to begin with.",
             {text("path", "A safetensors file inside the pod; empty begins with random weights.")
                  .length(0, 512)
                  .only({""}),
              list("skip", "Expressions for names of weights that are not taken over.",
                   text("", "A regular expression."), 64)
                  .not_built()});
  return object("model", "What is trained: exactly one of preset, layers or onnx.",
                {choice("preset", "A model by name; mlp is two dense layers for small images.",
                        {"mlp", "lenet", "resnet20", "resnet50"})
                     .only({"mlp"}),
                 options, layers_field(), FieldBuilder(onnx).not_built("use preset or layers"), init_from})
      .required()
      .rule(one_model_rule())
      .rule(options_with_preset_rule());
}

}  // namespace evenkeel::contract
