#include "trainer/checkpoint/init_from.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <string_view>

#include "trainer/checkpoint/checkpoint.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::size_t kMaxExpressionBytes = 1000;  // the library matches by recursion

Result<std::vector<std::regex>> compile(const std::vector<std::string>& expressions) {
  std::vector<std::regex> compiled;
  for (const std::string& text : expressions) {
    const auto refused = [&](const std::string& why) {
      return Error{ErrorCode::kInvalidInput,
                   "model.initFrom.skip: \"" + text.substr(0, 200) + "\" is no regular expression: " + why};
    };
    if (text.size() > kMaxExpressionBytes)
      return refused("longer than " + std::to_string(kMaxExpressionBytes) + " bytes");
    try {
      compiled.emplace_back(text, std::regex::ECMAScript);
    } catch (const std::regex_error& error) {
      return refused(error.what());
    }
  }
  return compiled;
}

bool matches_any(const std::vector<std::regex>& expressions, const std::string& name) {
  return std::any_of(expressions.begin(), expressions.end(),
                     [&](const std::regex& expression) { return std::regex_search(name, expression); });
}

// The file to read. A folder must be a checkpoint whose weights are what its manifest says.
Result<std::string> weights_file(base::Files& files, const std::string& path) {
  if (!files.list(path).ok()) return path;
  EVENKEEL_ASSIGN(const FoundCheckpoint found, read_manifest(files, path));
  for (const contract::CheckpointFile& file : found.manifest.files) {
    if (file.name == contract::kWeightsFile) EVENKEEL_TRY(verify_file(files, path, file));
  }
  return path + "/" + contract::kWeightsFile;
}

std::string described(const char* dtype, const std::vector<std::int64_t>& shape) {
  return std::string(dtype) + " " + shape_text(shape);
}

Status check_finite(const TensorView& target) {
  if (std::all_of(target.values.begin(), target.values.end(), [](float v) { return std::isfinite(v); }))
    return {};
  return Error{ErrorCode::kCorruptData, "tensor \"" + target.name + "\" holds a value that is not finite"};
}

Result<InitFromReport> load(base::Files& files, const std::string& path, const std::vector<std::regex>& skip,
                            const std::vector<TensorView>& targets) {
  InitFromReport report;
  EVENKEEL_ASSIGN(report.source, weights_file(files, path));
  EVENKEEL_ASSIGN(const SafetensorsIndex index, read_safetensors_index(files, report.source));
  std::map<std::string_view, const SafetensorsEntry*> unused;
  for (const SafetensorsEntry& entry : index.entries) unused[entry.name] = &entry;
  for (const TensorView& target : targets) {
    const auto found = unused.find(target.name);
    const SafetensorsEntry* const entry = found == unused.end() ? nullptr : found->second;
    if (matches_any(skip, target.name)) {
      report.skipped.push_back(target.name);
    } else if (entry == nullptr) {
      report.missing_in_file.push_back(target.name);
    } else if (entry->dtype != "F32" || entry->shape != target.shape) {
      report.other_shape.push_back(target.name + ": " + described(entry->dtype.c_str(), entry->shape) +
                                   " in the file, " + described("F32", target.shape) + " in the model");
    } else {
      EVENKEEL_TRY(read_tensor(files, report.source, index, *entry, target));
      EVENKEEL_TRY(check_finite(target));
      report.loaded.push_back(target.name);
    }
    if (entry != nullptr) unused.erase(found);
  }
  for (const SafetensorsEntry& entry : index.entries) {
    if (unused.contains(entry.name)) report.unused_in_file.push_back(entry.name);
  }
  return report;
}

std::string joined(const std::vector<std::string>& names, const char* separator) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : separator) + name;
  return text;
}

}  // namespace

Result<InitFromReport> load_initial_weights(base::Files& files, const std::string& path,
                                            const std::vector<std::string>& skip,
                                            const std::vector<TensorView>& targets) {
  EVENKEEL_ASSIGN(const std::vector<std::regex> expressions, compile(skip));
  Result<InitFromReport> report = load(files, path, expressions, targets);
  if (!report.ok()) return base::with_context("model.initFrom " + path, std::move(report).error());
  if (report->loaded.empty()) {
    return Error{ErrorCode::kMismatch, "model.initFrom " + path +
                                           ": nothing of it fits the model, so nothing would be loaded\n" +
                                           to_text(*report)};
  }
  return report;
}

std::string to_text(const InitFromReport& report) {
  const std::size_t of_model = report.loaded.size() + report.skipped.size() + report.missing_in_file.size() +
                               report.other_shape.size();
  std::string text = "loaded " + std::to_string(report.loaded.size()) + " of " + std::to_string(of_model) +
                     " tensors from " + report.source;
  const auto list = [&](const char* title, const std::vector<std::string>& names, const char* separator) {
    if (names.empty()) return;
    text +=
        std::string("\n  ") + title + " (" + std::to_string(names.size()) + "): " + joined(names, separator);
  };
  list("skipped as asked", report.skipped, ", ");
  list("not in the file", report.missing_in_file, ", ");
  list("of another shape or type", report.other_shape, "; ");
  list("in the file, not in the model", report.unused_in_file, ", ");
  return text;
}

}  // namespace evenkeel::trainer
