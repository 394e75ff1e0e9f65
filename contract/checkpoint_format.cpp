#include "contract/checkpoint_format.h"

#include <utility>

#include "base/json_reader.h"
#include "contract/pieces.h"

namespace evenkeel::contract {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::JsonReader;
using base::Result;

namespace {
constexpr char kPrefix[] = "step-";
constexpr std::size_t kDigits = 9;  // sorts by name up to 10^9 steps; longer numbers are written whole
}  // namespace

std::string checkpoint_directory_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return kPrefix + digits;
}

Result<std::int64_t> parse_checkpoint_directory_name(const std::string& name) {
  const Error error{ErrorCode::kInvalidInput, "'" + name + "' is not a checkpoint folder (step-<number>)"};
  const std::size_t prefix = sizeof(kPrefix) - 1;
  if (name.compare(0, prefix, kPrefix) != 0 || name.size() < prefix + kDigits || name.size() > prefix + 15)
    return error;
  std::int64_t step = 0;
  for (char c : name.substr(prefix)) {
    if (c < '0' || c > '9') return error;
    step = step * 10 + (c - '0');
  }
  return step;
}

Json to_json(const CheckpointManifest& m) {
  Json files = Json::array();
  for (const CheckpointFile& file : m.files)
    files.push_back({{"name", file.name}, {"size", file.size}, {"crc32c", file.crc32c}});
  Json parts = Json::array();
  for (const auto& [name, hash] : m.plan_parts) parts.push_back(Json::array({name, hash}));
  Json json = {{"format", m.format},
          {"jobUid", m.job_uid},
          {"step", m.step},
          {"epoch", m.epoch},
          {"cursor", m.cursor},
          {"samples", m.samples},
          {"optimizerSteps", m.optimizer_steps},
          {"consumed", m.consumed},
          {"seed", m.seed},
          {"shuffleSeed", m.shuffle_seed},
          {"attempt", m.attempt},
          {"ranks", m.ranks},
          {"planHash", m.plan_hash},
          {"planParts", parts},
          {"files", files}};
  if (!m.owned.empty()) json["owned"] = pieces_json(m.owned);
  if (!m.poison.empty()) json["poison"] = m.poison;
  if (m.rate_batch > 0) json["rateBatch"] = m.rate_batch;
  return json;
}

Result<CheckpointManifest> decode_manifest(const Json& json) {
  JsonReader r(json, "manifest");
  CheckpointManifest m;
  m.format = static_cast<int>(r.require("format").integer("format", 0));
  if (m.format != 1) r.fail("format", "is " + std::to_string(m.format) + "; this version reads format 1");
  m.job_uid = r.string("jobUid");
  m.step = r.require("step").count("step");
  m.epoch = r.require("epoch").count("epoch");
  m.cursor = r.require("cursor").count("cursor");
  m.samples = r.count("samples");
  m.optimizer_steps = r.integer("optimizerSteps", m.step, 0, JsonReader::kMostExact);  // absent in the first checkpoints
  const auto counts = [&r](std::string_view key) {
    std::vector<std::int64_t> out;
    for (double value : r.numbers(key, 65536)) {
      if (value < 0 || value > static_cast<double>(JsonReader::kMostExact))
        r.fail(key, "out of range");
      else
        out.push_back(static_cast<std::int64_t>(value));
    }
    return out;
  };
  m.consumed = counts("consumed");
  m.owned = read_pieces(r, "owned");
  m.poison = counts("poison");
  m.rate_batch = r.number("rateBatch", 0);
  if (m.rate_batch < 0 || m.rate_batch > static_cast<double>(JsonReader::kMostExact)) r.fail("rateBatch", "out of range");
  // Seeds use all 64 bits; the reader's integers are signed.
  auto unsigned_at = [&r](std::string_view key) -> std::uint64_t {
    const Json& value = r.any(key);
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    if (value.is_number_integer() && value.get<std::int64_t>() >= 0)
      return static_cast<std::uint64_t>(value.get<std::int64_t>());
    if (!value.is_null()) r.fail(key, "must be an integer >= 0");
    return 0;
  };
  m.seed = unsigned_at("seed");
  m.shuffle_seed = unsigned_at("shuffleSeed");
  m.attempt = static_cast<std::uint32_t>(r.integer("attempt", 0, 0, 4294967295));
  m.ranks = static_cast<int>(r.integer("ranks", 0, 0, 65536));
  m.plan_hash = r.string("planHash");
  const Json& parts = r.any("planParts");
  if (parts.is_array() && parts.size() <= 100000) {
    for (const Json& part : parts) {
      if (part.is_array() && part.size() == 2 && part[0].is_string() && part[1].is_string()) {
        m.plan_parts.emplace_back(part[0].get<std::string>(), part[1].get<std::string>());
      } else {
        r.fail("planParts", "must be a list of [name, hash]");
      }
    }
  }
  for (JsonReader& file : r.array("files", 1000)) {
    CheckpointFile f;
    f.name = file.require("name").string("name");
    f.size = static_cast<std::uint64_t>(file.require("size").count("size"));
    f.crc32c = static_cast<std::uint32_t>(file.require("crc32c").integer("crc32c", 0, 0, 4294967295));
    // A manifest must not lead out of its folder.
    if (f.name.empty() || f.name.find('/') != std::string::npos || f.name[0] == '.')
      file.fail("name", "'" + f.name + "' is not a plain file name");
    m.files.push_back(std::move(f));
  }
  base::Status status = r.finish();
  if (!status.ok()) return Error{ErrorCode::kCorruptData, status.error().message};
  return m;
}

}  // namespace evenkeel::contract
