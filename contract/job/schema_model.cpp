// spec.model: exactly one of preset, layers, onnx.
#include <algorithm>
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

// Which layers a member belongs to, and which cannot do without it.
struct LayerMember {
  const char* name;
  std::vector<std::string> types;
  bool needed = false;
};

const std::vector<LayerMember>& layer_members() {
  static const std::vector<LayerMember> members = {
      {"units", {"dense"}, true},
      {"filters", {"conv2d", "shortcut"}, true},
      {"kernelSize", {"conv2d", "maxPool", "avgPool"}, true},
      {"strides", {"conv2d", "maxPool", "avgPool", "shortcut"}},
      {"padding", {"conv2d", "maxPool", "avgPool"}},
      {"pads", {"conv2d", "maxPool", "avgPool"}},
      {"dilation", {"conv2d"}},
      {"groups", {"conv2d"}},
      {"bias", {"dense", "conv2d"}},
      {"initializer", {"dense", "conv2d"}},
      {"activation", {"dense", "conv2d", "batchNorm", "add"}},
      {"momentum", {"batchNorm"}},
      {"epsilon", {"batchNorm"}},
      {"rate", {"dropout"}, true},
      {"shape", {"reshape"}, true},
  };
  return members;
}

std::string joined(const std::vector<std::string>& words, const char* quote, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + (quote + word) + quote;
  return text;
}

FieldRule layer_member_rule(const LayerMember& member) {
  const std::string has = std::string("has(self.") + member.name + ")";
  const std::string list = "self.type in [" + joined(member.types, "'", ", ") + "]";
  const std::string words = joined(member.types, "", ", ");
  FieldRule rule;
  rule.cel = member.needed ? "!has(self.type) || " + has + " == (" + list + ")"
                           : "!has(self.type) || !" + has + " || " + list;
  rule.message = std::string("layer {type}: ") + member.name + " is for " + words +
                 (member.needed ? ", which need it" : " alone");
  rule.holds = [&member](const Json& self, const Json&) {
    const std::string type = base::string_at(self, "type");
    const bool fits = std::find(member.types.begin(), member.types.end(), type) != member.types.end();
    if (!self.contains("type")) return true;
    return member.needed ? self.contains(member.name) == fits : !self.contains(member.name) || fits;
  };
  return rule;
}

FieldRule pads_rule() {
  return {.cel = "!has(self.pads) || !has(self.padding)",
          .message = "layer {type}: padding and pads say the same in two ways; give one",
          .holds = [](const Json& self, const Json&) {
            return !self.contains("pads") || !self.contains("padding");
          }};
}

FieldRule pad_count_rule() {
  return {.cel = "size(self) != 3",
          .message = "pads needs 1, 2 or 4 numbers: all sides; height and width; top, left, bottom, right",
          .holds = [](const Json& self, const Json&) { return self.size() != 3; }};
}

FieldRule add_inputs_rule() {
  return {.cel =
              "!has(self.type) || (self.type == 'add' ? has(self.inputs) && size(self.inputs) == 2 : "
              "!has(self.inputs) || size(self.inputs) == 1)",
          .message =
              "layer {type}: add needs two inputs, every other layer takes one (the one before where "
              "absent)",
          .holds = [](const Json& self, const Json&) {
            if (!self.contains("type")) return true;
            if (self["type"] == "add") return self.contains("inputs") && self["inputs"].size() == 2;
            return !self.contains("inputs") || self["inputs"].size() == 1;
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

// One number for both directions, or one each.
FieldBuilder sizes(const char* name, const char* description, int low, int most) {
  return list(name, description, integer("", "Number of pixels.", low, 65536), most).items(1, most);
}

Field layers_field() {
  Field item = object(
      "", "One layer.",
      {choice("type", "Kind of layer; images are (height, width, channels), dense takes rows of numbers.",
              {"dense", "flatten", "relu", "conv2d", "batchNorm", "maxPool", "avgPool", "globalAvgPool",
               "dropout", "add", "reshape", "shortcut", "concat"})
           .required()
           .only({"dense", "flatten", "relu", "conv2d", "batchNorm", "maxPool", "avgPool", "globalAvgPool",
                  "dropout", "add", "reshape", "shortcut"}),
       text("name",
            "Name of the layer, also of its weights in checkpoints; its type and count where absent, e.g. "
            "dense_1.")
           .length(1, 63)
           .pattern("^[A-Za-z][A-Za-z0-9_]*$"),
       integer("units", "Outputs of a dense layer.", 1, 1048576),
       integer("filters", "Output channels; a shortcut fills up with zeros.", 1, 65536),
       sizes("kernelSize", "Height and width of the window, or one number for both.", 1, 2),
       sizes("strides", "Steps of the window; 1 where absent, for pools the window.", 1, 2),
       choice("padding",
              "Zeros around the image; valid: none (where absent), same so many that only strides "
              "make it smaller.",
              {"valid", "same"}),
       sizes("pads",
             "Zeros around the image in numbers: one for all sides, height and width, or top, left, "
             "bottom, right.",
             0, 4)
           .rule(pad_count_rule()),
       sizes("dilation", "Distance of the window's points; 1 where absent.", 1, 2),
       integer("groups", "Groups of channels that do not mix; 1 where absent.", 1, 65536),
       choice("activation", "What follows the layer at once; nothing where absent.", {"relu"}),
       boolean("bias", "Whether the layer adds a bias; true where absent."),
       choice("initializer", "Distribution of the first weights; heNormal where absent.",
              {"heNormal", "heUniform", "glorotUniform"}),
       number("momentum",
              "Share of new statistics in the running ones; as optimizer.convention where absent.")
           .range(0, 1),
       number("epsilon", "Added to the variance; as optimizer.convention where absent.").range(0, 1),
       number("rate", "Share of values that dropout leaves out.").range(0, 0.999),
       list("shape", "Shape of a sample behind a reshape.", integer("", "Size of a dimension.", 1, 16777216),
            4)
           .items(1, 4),
       list("inputs", "Names of the layers that feed this one; the one before where absent.",
            text("", "Name of a layer, or input.").length(1, 63), 16)});
  for (const LayerMember& member : layer_members()) item.rules.push_back(layer_member_rule(member));
  item.rules.push_back(pads_rule());
  item.rules.push_back(add_inputs_rule());
  return list("layers", "The model, first layer to last; each reads the one before or those it names.", item,
              64)
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
  Field init_from = object(
      "initFrom", "Weights to begin with, by name and shape; what was not loaded is listed.",
      {text("path", "A safetensors file inside the pod; empty begins with random weights.").length(0, 512),
       list("skip", "Expressions for names of weights that are not taken over.",
            text("", "A regular expression.").length(1, 253), 64)});
  return object("model", "What is trained: exactly one of preset, layers or onnx.",
                {choice("preset",
                        "A model by name: mlp and lenet for small images, resnet20 for 32 pixels and more, "
                        "resnet50 for photographs.",
                        {"mlp", "lenet", "resnet20", "resnet50"}),
                 options, layers_field(), FieldBuilder(onnx).not_built("use preset or layers"), init_from})
      .required()
      .rule(one_model_rule())
      .rule(options_with_preset_rule());
}

}  // namespace evenkeel::contract
