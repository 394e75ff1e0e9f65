#include "operator/kube/yaml_reader.h"

#include <yaml-cpp/yaml.h>

#include <sstream>
#include <stdexcept>
#include <vector>

#include <yaml-cpp/eventhandler.h>

namespace evenkeel::oper {
namespace {

using base::Json;

constexpr std::size_t kMaxBytes = 1u << 20;
constexpr std::size_t kMaxDepth = 64;
constexpr int kMaxNodes = 100000;

// Builds the value from the parser's events: an alias is an event of its own, so nothing is ever unfolded.
class Builder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(mark, Json(), false); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(mark, "aliases are not accepted"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    const bool plain_null = tag == "?" && (value.empty() || value == "~" || value == "null");
    add(mark, plain_null && !expects_key() ? Json() : Json(value), true);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, Json::array());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(mark, Json::object());
  }
  void OnMapEnd() override { close(); }

  Json take() { return std::move(root_); }

 private:
  struct Level {
    Json value;
    std::string key;
    bool has_key = false;
  };

  [[noreturn]] static void refuse(const YAML::Mark& mark, const std::string& what) {
    throw std::runtime_error("line " + std::to_string(mark.line + 1) + ": " + what);
  }

  bool expects_key() const {
    return !levels_.empty() && levels_.back().value.is_object() && !levels_.back().has_key;
  }

  void add(const YAML::Mark& mark, Json value, bool scalar) {
    if (++nodes_ > kMaxNodes) refuse(mark, "more than 100000 nodes");
    if (expects_key()) {
      if (!scalar) refuse(mark, "a key must be text");
      return set_key(mark, value.get<std::string>());
    }
    put(std::move(value));
  }

  void set_key(const YAML::Mark& mark, std::string key) {
    if (key == "<<") refuse(mark, "merge keys are not accepted");
    if (levels_.back().value.contains(key)) refuse(mark, "the key '" + key + "' is there twice");
    levels_.back().key = std::move(key);
    levels_.back().has_key = true;
  }

  void put(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
    } else if (levels_.back().value.is_array()) {
      levels_.back().value.push_back(std::move(value));
    } else {
      levels_.back().value[levels_.back().key] = std::move(value);
      levels_.back().has_key = false;
    }
  }

  void open(const YAML::Mark& mark, Json value) {
    if (++nodes_ > kMaxNodes) refuse(mark, "more than 100000 nodes");
    if (expects_key()) refuse(mark, "a key must be text");
    if (levels_.size() >= kMaxDepth) refuse(mark, "deeper than 64 levels");
    levels_.push_back({std::move(value), "", false});
  }

  void close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    put(std::move(value));
  }

  std::vector<Level> levels_;
  Json root_;
  int nodes_ = 0;
};

}  // namespace

base::Result<Json> read_yaml(const std::string& text) {
  if (text.size() > kMaxBytes)
    return base::Error{base::ErrorCode::kInvalidInput,
                       std::to_string(text.size()) + " bytes of YAML; at most 1 MiB"};
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Builder builder;
    if (!parser.HandleNextDocument(builder)) return Json();
    return builder.take();
  } catch (const std::exception& error) {
    return base::Error{base::ErrorCode::kInvalidInput, std::string("YAML: ") + error.what()};
  }
}

}  // namespace evenkeel::oper
