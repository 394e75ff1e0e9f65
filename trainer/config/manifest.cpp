#include "trainer/config/manifest.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include "contract/labels.h"

namespace evenkeel::trainer {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

constexpr std::size_t kMaxBytes = 1u << 20;
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxNodes = 100000;

// YAML 1.2 core schema, as kubectl reads a manifest: "yes" stays text, 010 is decimal ten only where it is a
// number at all.
Json scalar(const std::string& tag, const std::string& text) {
  if (tag == "!" || tag == "tag:yaml.org,2002:str") return text;  // quoted
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (auto [at, error] = std::from_chars(begin, end, integer); error == std::errc() && at == end)
    return integer;
  double number = 0;
  if (auto [at, error] = std::from_chars(begin, end, number);
      error == std::errc() && at == end && std::isfinite(number))
    return number;
  return text;
}

// Builds JSON from parser events, so that limits hold before anything is unfolded. Throws
// YAML::ParserException, which parse_manifests catches.
class JsonBuilder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override { root_ = nullptr; }
  void OnDocumentEnd() override {
    if (!root_.is_null()) documents_.push_back(std::move(root_));
    root_ = nullptr;
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(mark, anchor, nullptr); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw YAML::ParserException(mark, "aliases (*name) are not accepted; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!stack_.empty() && stack_.back().value.is_object() && !stack_.back().has_key) {
      start_key(mark, anchor, value);
    } else {
      add(mark, anchor, scalar(tag, value));
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, Json::array());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, Json::object());
  }
  void OnMapEnd() override { close(); }

  std::vector<Json> take() { return std::move(documents_); }

 private:
  struct Level {
    Json value;
    std::string key;
    bool has_key = false;
  };

  void count(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0)
      throw YAML::ParserException(mark, "anchors (&name) are not accepted; write the value out");
    if (++nodes_ > kMaxNodes)
      throw YAML::ParserException(mark, "more than " + std::to_string(kMaxNodes) + " values");
  }

  void start_key(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& key) {
    count(mark, anchor);
    Level& level = stack_.back();
    if (key == "<<")
      throw YAML::ParserException(mark, "merge keys (<<) are not accepted; write the members out");
    if (level.value.contains(key))
      throw YAML::ParserException(mark, "the key '" + key + "' stands twice in one mapping");
    level.key = key;
    level.has_key = true;
  }

  void add(const YAML::Mark& mark, YAML::anchor_t anchor, Json value) {
    count(mark, anchor);
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = stack_.back();
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else if (level.has_key) {
      level.value[level.key] = std::move(value);
      level.has_key = false;
    } else {
      throw YAML::ParserException(mark, "a key must be plain text");
    }
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, Json empty) {
    count(mark, anchor);
    if (stack_.size() >= kMaxDepth)
      throw YAML::ParserException(mark, "more than " + std::to_string(kMaxDepth) + " levels");
    if (!stack_.empty() && stack_.back().value.is_object() && !stack_.back().has_key) {
      throw YAML::ParserException(mark, "a key must be plain text");
    }
    stack_.push_back({std::move(empty), "", false});
  }

  void close() {
    Json value = std::move(stack_.back().value);
    stack_.pop_back();
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (stack_.back().value.is_array()) {
      stack_.back().value.push_back(std::move(value));
    } else {
      stack_.back().value[stack_.back().key] = std::move(value);
      stack_.back().has_key = false;
    }
  }

  std::vector<Json> documents_;
  std::vector<Level> stack_;
  Json root_;
  std::size_t nodes_ = 0;
};

}  // namespace

Result<std::vector<Json>> parse_manifests(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return Error{ErrorCode::kInvalidInput, "manifest: " + std::to_string(text.size()) + " bytes, at most " +
                                               std::to_string(kMaxBytes) + " are read"};
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    JsonBuilder builder;
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const YAML::Exception& error) {
    return Error{ErrorCode::kInvalidInput, "line " + std::to_string(error.mark.line + 1) + ", column " +
                                               std::to_string(error.mark.column + 1) + ": " + error.msg};
  }
}

Result<Json> load_manifest(const std::string& path, base::Files& files) {
  Result<std::string> text = files.read(path, kMaxBytes);
  if (!text.ok()) {
    Error error = std::move(text).error();
    error.code = ErrorCode::kInvalidInput;  // the argument is wrong, not the data set
    return error;
  }
  Result<std::vector<Json>> documents = parse_manifests(*text);
  if (!documents.ok()) return base::with_context(path, std::move(documents).error());
  Json job;
  int count = 0;
  for (Json& document : *documents) {
    if (base::string_at(document, "kind") != contract::kKind) continue;
    job = std::move(document);
    ++count;
  }
  if (count != 1) {
    return Error{ErrorCode::kInvalidInput, path + ": holds " + std::to_string(count) + " objects of kind " +
                                               contract::kKind + ", exactly one is needed"};
  }
  return job;
}

}  // namespace evenkeel::trainer
