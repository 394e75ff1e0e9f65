#include "contract/messages.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/json_reader.h"
#include "contract/pieces.h"

namespace evenkeel::contract {

using base::Error;
using base::ErrorCode;
using base::JsonReader;
using base::Result;

namespace {


// Frames come from the network: what does not decode is corrupt data, not a user's mistake.
template <class T>
Result<T> finish(JsonReader& reader, T value) {
  base::Status status = reader.finish();
  if (!status.ok()) return Error{ErrorCode::kCorruptData, status.error().message};
  return value;
}

Json fence_json(const Fence& fence) {
  return Json::array({fence.attempt, fence.coordinator_incarnation, fence.generation});
}

Fence read_fence(JsonReader& reader) {
  const std::vector<double> parts = reader.numbers("fence", 3);
  Fence fence;
  if (parts.size() != 3) {
    reader.fail("fence", "must be [attempt, coordinator incarnation, generation]");
    return fence;
  }
  for (double part : parts) {
    if (part < 0 || part > 4294967295.0) {
      reader.fail("fence", "out of range");
      return fence;
    }
  }
  return {static_cast<std::uint32_t>(parts[0]), static_cast<std::uint32_t>(parts[1]),
          static_cast<std::uint32_t>(parts[2])};
}

std::vector<std::int64_t> counts(JsonReader& reader, std::string_view key) {
  std::vector<std::int64_t> out;
  for (double value : reader.numbers(key, 65536)) {
    if (value < 0 || value > static_cast<double>(JsonReader::kMostExact))
      reader.fail(key, "out of range");
    else
      out.push_back(static_cast<std::int64_t>(value));
  }
  return out;
}

Json pairs_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json out = Json::array();
  for (const auto& [name, value] : pairs) out.push_back(Json::array({name, value}));
  return out;
}

std::vector<std::pair<std::string, std::string>> read_pairs(JsonReader& reader, std::string_view key) {
  std::vector<std::pair<std::string, std::string>> out;
  const Json& list = reader.any(key);
  if (list.is_null()) return out;
  if (!list.is_array() || list.size() > 100000) {
    reader.fail(key, "must be a list of [name, hash]");
    return out;
  }
  for (const Json& item : list) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_string() || !item[1].is_string()) {
      reader.fail(key, "must be a list of [name, hash]");
      break;
    }
    out.emplace_back(item[0].get<std::string>(), item[1].get<std::string>());
  }
  return out;
}

// 64-bit hashes travel as hex text: JSON numbers are doubles for many readers.
std::string hex64(std::uint64_t value) {
  std::string out(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4)
    out[static_cast<std::size_t>(i)] = "0123456789abcdef"[value & 15];
  return out;
}

std::uint64_t read_hex64(JsonReader& reader, std::string_view key) {
  std::uint64_t value = 0;
  const std::string text = reader.string(key);
  if (text.size() > 16) reader.fail(key, "must be at most 16 hexadecimal digits");
  for (char c : text) {
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) {
      reader.fail(key, "must be hexadecimal");
      return 0;
    }
    value = value << 4 | static_cast<std::uint64_t>(digit);
  }
  return value;
}

}  // namespace

std::string handshake_proof(const std::string& key, const std::string& side, const Hello& hello,
                            const std::string& nonce_hex) {
  const std::string text = "evenkeel|" + side + "|" + hello.job_uid + "|" + std::to_string(hello.attempt) +
                           "|worker|" + std::to_string(hello.rank) + "|" + std::to_string(hello.incarnation) +
                           "|" + nonce_hex;
  return base::to_hex(base::hmac_sha256(key, text));
}

double& phase(PhaseSeconds& p, int index) {
  double* const all[] = {&p.input_wait, &p.h2d_copy,   &p.forward, &p.backward, &p.collective_wait,
                         &p.optimizer,  &p.checkpoint, &p.eval,    &p.other};
  return *all[index];
}

double phase(const PhaseSeconds& p, int index) {
  return phase(const_cast<PhaseSeconds&>(p), index);
}

Json to_json(const Hello& m) {
  return {{"protocol", m.protocol},       {"jobUid", m.job_uid}, {"attempt", m.attempt}, {"rank", m.rank},
          {"incarnation", m.incarnation}, {"podUid", m.pod_uid}, {"nonce", m.nonce_hex}};
}

Result<Hello> decode_hello(const Json& json) {
  JsonReader r(json, "hello");
  Hello m;
  m.protocol = static_cast<int>(r.integer("protocol", 0, 0, 1000));
  m.job_uid = r.string("jobUid");
  m.attempt = static_cast<std::uint32_t>(r.integer("attempt", 0, 0, 4294967295));
  m.rank = static_cast<int>(r.integer("rank", -1, 0, 65535));
  m.incarnation = r.count("incarnation");
  m.pod_uid = r.string("podUid");
  m.nonce_hex = r.string("nonce");
  return finish(r, m);
}

Json to_json(const Challenge& m) {
  return {{"nonce", m.nonce_hex}, {"proof", m.proof_hex}};
}

Result<Challenge> decode_challenge(const Json& json) {
  JsonReader r(json, "challenge");
  Challenge m{r.string("nonce"), r.string("proof")};
  return finish(r, m);
}

Json to_json(const CheckpointPosition& m) {
  Json json = {{"step", m.step},         {"epoch", m.epoch},
               {"cursor", m.cursor},     {"manifestHash", m.manifest_hash},
               {"consumed", m.consumed}, {"skipped", m.skipped}};
  if (!m.owned.empty()) json["owned"] = pieces_json(m.owned);
  if (!m.poison.empty()) json["poison"] = m.poison;
  if (m.rate_batch > 0) json["rateBatch"] = m.rate_batch;
  return json;
}

namespace {
CheckpointPosition read_position(JsonReader& r) {
  CheckpointPosition m;
  m.step = r.count("step");
  m.epoch = r.count("epoch");
  m.cursor = r.count("cursor");
  m.manifest_hash = r.string("manifestHash");
  m.consumed = counts(r, "consumed");
  m.skipped = r.strings("skipped", 1000);
  m.owned = read_pieces(r, "owned");
  m.poison = counts(r, "poison");
  m.rate_batch = r.number("rateBatch", 0);
  return m;
}
}  // namespace

Result<CheckpointPosition> decode_checkpoint_position(const Json& json) {
  JsonReader r(json, "checkpoint");
  CheckpointPosition m = read_position(r);
  return finish(r, std::move(m));
}

Json to_json(const Join& m) {
  Json json = {{"proof", m.proof_hex},
          {"planHash", m.plan_hash},
          {"planParts", pairs_json(m.plan_parts)},
          {"byteOrder", m.byte_order},
          {"dataAddress", m.data_address},
          {"pod", m.pod},
          {"node", m.node},
          {"trainSamples", m.train_samples},
          {"evalSamples", m.eval_samples},
          {"checkpoint", to_json(m.checkpoint)},
          {"threads", m.threads},
          {"cpuLimit", m.cpu_limit},
          {"cores", m.cores},
          {"deviceModel", m.device_model},
          {"dataThreads", m.data_threads},
          {"freeMemoryBytes", m.free_memory_bytes},
          {"decodedBytes", m.decoded_bytes},
          {"version", m.version}};
  if (!m.file_samples.empty()) json["fileSamples"] = m.file_samples;
  if (m.held) json["held"] = to_json(*m.held);
  return json;
}

Result<Join> decode_join(const Json& json) {
  JsonReader r(json, "join");
  Join m;
  m.proof_hex = r.string("proof");
  m.plan_hash = r.string("planHash");
  m.plan_parts = read_pairs(r, "planParts");
  m.byte_order = r.string("byteOrder");
  m.data_address = r.string("dataAddress");
  m.pod = r.string("pod");
  m.node = r.string("node");
  m.train_samples = r.count("trainSamples");
  m.eval_samples = r.count("evalSamples");
  {
    JsonReader checkpoint = r.object("checkpoint");
    m.checkpoint = read_position(checkpoint);
  }
  if (r.has("held")) {
    JsonReader held = r.object("held");
    m.held = read_position(held);
  }
  m.threads = static_cast<int>(r.integer("threads", 1, 1, 4096));
  m.cpu_limit = r.number("cpuLimit", 0);
  m.cores = static_cast<int>(r.integer("cores", 0, 0, 65536));
  m.device_model = r.string("deviceModel");
  m.data_threads = static_cast<int>(r.integer("dataThreads", 0, 0, 4096));
  m.free_memory_bytes = r.number("freeMemoryBytes", 0);
  m.decoded_bytes = r.number("decodedBytes", 0);
  m.file_samples = counts(r, "fileSamples");
  m.version = r.string("version");
  return finish(r, std::move(m));
}

int Membership::position_of(int other) const {
  const auto at = std::find(ranks.begin(), ranks.end(), other);
  return at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
}

int Membership::position() const {
  return position_of(rank);
}

namespace {
const std::vector<std::string_view> kSourceNames = {"Initial", "Checkpoint", "Memory", "InPlace"};

bool ascending(const std::vector<int>& ranks) {
  return std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
}

void check_group(JsonReader& r, const Membership& m) {
  if (m.ranks.empty() || !ascending(m.ranks)) r.fail("ranks", "must be ascending and not empty");
  if (m.peers.size() != m.ranks.size()) r.fail("peers", "must be as many as ranks");
  if (m.position() < 0) r.fail("rank", "is not in the group");
  if (m.position_of(m.writer) < 0) r.fail("writer", "is not in the group");
  const bool restores = m.source == StateSource::kCheckpoint || m.source == StateSource::kMemory;
  if (restores && m.position_of(m.restore_rank) < 0) r.fail("restoreRank", "is not in the group");
}
}  // namespace

Json to_json(const Membership& m) {
  return {{"fence", fence_json(m.fence)},
          {"rank", m.rank},
          {"ranks", m.ranks},
          {"peers", m.peers},
          {"source", kSourceNames[static_cast<std::size_t>(m.source)]},
          {"restoreRank", m.restore_rank},
          {"restoreStep", m.restore_step},
          {"targetSteps", m.target_steps},
          {"writer", m.writer},
          {"preflight", m.preflight},
          {"evaluateFirst", m.evaluate_first},
          {"checkpointFirst", m.checkpoint_first}};
}

Result<Membership> decode_membership(const Json& json) {
  JsonReader r(json, "membership");
  Membership m;
  m.fence = read_fence(r);
  m.rank = static_cast<int>(r.integer("rank", -1, 0, 65535));
  for (const std::int64_t rank : counts(r, "ranks")) m.ranks.push_back(static_cast<int>(std::min<std::int64_t>(rank, 65536)));
  m.peers = r.strings("peers", 65536);
  m.source = static_cast<StateSource>(r.one_of("source", kSourceNames, 0));
  m.restore_rank = static_cast<int>(r.integer("restoreRank", -1, -1, 65535));
  m.restore_step = r.count("restoreStep");
  m.target_steps = r.count("targetSteps");
  m.writer = static_cast<int>(r.integer("writer", 0, 0, 65535));
  m.preflight = r.boolean("preflight");
  m.evaluate_first = r.boolean("evaluateFirst");
  m.checkpoint_first = r.boolean("checkpointFirst");
  check_group(r, m);
  return finish(r, std::move(m));
}

Json to_json(const Regroup& m) {
  return {{"fence", fence_json(m.fence)}, {"reason", m.reason}};
}

Result<Regroup> decode_regroup(const Json& json) {
  JsonReader r(json, "regroup");
  Regroup m{read_fence(r), r.string("reason")};
  return finish(r, std::move(m));
}

namespace {
constexpr std::pair<const char*, double Preflight::*> kPreflightFields[] = {
    {"busBytesPerSecond", &Preflight::bus_bytes_per_second},
    {"hopSeconds", &Preflight::hop_seconds},
    {"shareComputeSeconds", &Preflight::share_compute_seconds},
    {"shareInputSeconds", &Preflight::share_input_seconds},
    {"samples", &Preflight::samples},
    {"computeSeconds", &Preflight::compute_seconds},
    {"inputSeconds", &Preflight::input_seconds},
    {"stepSeconds", &Preflight::step_seconds},
    {"realStepSeconds", &Preflight::real_step_seconds},
    {"syntheticStepSeconds", &Preflight::synthetic_step_seconds},
    {"bestBusBytesPerSecond", &Preflight::best_bus_bytes_per_second},
    {"bestBucketBytes", &Preflight::best_bucket_bytes},
    {"seconds", &Preflight::seconds}};
}  // namespace

Json to_json(const Ready& m) {
  Json json = {{"fence", fence_json(m.fence)},
               {"parameterHash", m.parameter_hash},
               {"restoreSeconds", m.restore_seconds}};
  if (m.preflight) {
    for (const auto& [name, field] : kPreflightFields) json["preflight"][name] = (*m.preflight).*field;
  }
  return json;
}

Result<Ready> decode_ready(const Json& json) {
  JsonReader r(json, "ready");
  Ready m;
  m.fence = read_fence(r);
  m.parameter_hash = r.string("parameterHash");
  m.restore_seconds = r.number("restoreSeconds", 0);
  if (r.has("preflight")) {
    m.preflight.emplace();
    JsonReader found = r.object("preflight");
    for (const auto& [name, field] : kPreflightFields) (*m.preflight).*field = found.number(name, 0);
  }
  return finish(r, std::move(m));
}

Json to_json(const StepPlan& m) {
  Json json = {{"fence", fence_json(m.fence)}, {"step", m.step},
               {"epoch", m.epoch},             {"cuts", m.cuts},
               {"batch", m.global_batch},      {"rateBatch", m.rate_batch}};
  if (m.evaluate_after) json["evaluate"] = true;
  if (m.checkpoint_after) json["checkpoint"] = true;
  if (m.stop_after) json["stop"] = true;
  if (!m.pieces.empty()) json["pieces"] = pieces_json(m.pieces);
  return json;
}

Result<StepPlan> decode_step_plan(const Json& json) {
  JsonReader r(json, "step plan");
  StepPlan m;
  m.fence = read_fence(r);
  m.step = r.count("step");
  m.epoch = r.count("epoch");
  m.cuts = counts(r, "cuts");
  for (std::size_t i = 1; i < m.cuts.size(); ++i) {
    if (m.cuts[i] < m.cuts[i - 1]) r.fail("cuts", "must not decrease");
  }
  m.global_batch = r.count("batch");
  m.rate_batch = r.number("rateBatch", 0);
  m.evaluate_after = r.boolean("evaluate");
  m.checkpoint_after = r.boolean("checkpoint");
  m.stop_after = r.boolean("stop");
  m.pieces = read_pieces(r, "pieces");
  return finish(r, std::move(m));
}

Json to_json(const PhaseSeconds& m) {
  Json json = Json::array();
  for (int i = 0; i < static_cast<int>(std::size(kPhaseNames)); ++i) json.push_back(phase(m, i));
  return json;
}

Result<PhaseSeconds> decode_phase_seconds(const Json& json) {
  PhaseSeconds m;
  const Error error{
      ErrorCode::kCorruptData,
      "phases: must be a list of " + std::to_string(std::size(kPhaseNames)) + " finite numbers >= 0"};
  if (!json.is_array() || json.size() != std::size(kPhaseNames)) return error;
  for (int i = 0; i < static_cast<int>(json.size()); ++i) {
    const Json& item = json[static_cast<std::size_t>(i)];
    if (!item.is_number() || !(item.get<double>() >= 0) || item.get<double>() > 1e9) return error;
    phase(m, i) = item.get<double>();
  }
  return m;
}

// Non-finite numbers are not JSON: they are never sent, a worker that has one fails instead.
Json to_json(const Commit& m) {
  Json json = {{"fence", fence_json(m.fence)},
          {"step", m.step},
          {"samples", m.samples},
          {"reducedCount", m.reduced_count},
          {"idsHash", hex64(m.ids_hash)},
          {"reducedIdsHash", hex64(m.reduced_ids_hash)},
          {"lossSum", m.loss_sum},
          {"correct", m.correct},
          {"learningRate", m.learning_rate},
          {"gradientNorm", m.gradient_norm},
          {"phases", to_json(m.phases)},
          {"stepSeconds", m.step_seconds},
          {"collectives", m.collectives},
          {"collectiveBytes", m.collective_bytes}};
  if (m.work > 0) json["work"] = m.work;
  if (!m.skipped_ids.empty()) json["skippedIds"] = m.skipped_ids;
  if (m.own_gradient_square > 0) json["gradientSquares"] = {m.own_gradient_square, m.reduced_gradient_square};
  if (m.no_core_seconds > 0) json["noCoreSeconds"] = {m.no_core_seconds, m.no_core_reducing_seconds};
  return json;
}

namespace {
Commit read_commit(JsonReader& r) {
  Commit m;
  m.fence = read_fence(r);
  m.step = r.count("step");
  m.samples = r.count("samples");
  m.reduced_count = r.count("reducedCount");
  m.ids_hash = read_hex64(r, "idsHash");
  m.reduced_ids_hash = read_hex64(r, "reducedIdsHash");
  m.loss_sum = r.number("lossSum", 0);
  m.correct = r.number("correct", 0);
  m.learning_rate = r.number("learningRate", 0);
  m.gradient_norm = r.number("gradientNorm", 0);
  Result<PhaseSeconds> phases = decode_phase_seconds(r.any("phases"));
  if (phases.ok())
    m.phases = *phases;
  else
    r.fail("phases", phases.error().message);
  m.step_seconds = r.number("stepSeconds", 0);
  m.collectives = static_cast<std::uint64_t>(r.count("collectives"));
  m.collective_bytes = static_cast<std::uint64_t>(r.count("collectiveBytes"));
  m.work = r.number("work", 0);
  m.skipped_ids = counts(r, "skippedIds");
  if (const std::vector<double> squares = r.numbers("gradientSquares", 2); squares.size() == 2) {
    m.own_gradient_square = squares[0];
    m.reduced_gradient_square = squares[1];
  }
  if (const std::vector<double> seconds = r.numbers("noCoreSeconds", 2); seconds.size() == 2) {
    m.no_core_seconds = seconds[0];
    m.no_core_reducing_seconds = seconds[1];
  }
  return m;
}
}  // namespace

Result<Commit> decode_commit(const Json& json) {
  JsonReader r(json, "commit");
  Commit m = read_commit(r);
  return finish(r, m);
}

Json to_json(const Paused& m) {
  Json json = {{"fence", fence_json(m.fence)},
               {"step", m.step},
               {"evaluated", m.evaluated},
               {"checkpointed", m.checkpointed}};
  if (m.last) json["last"] = to_json(*m.last);
  return json;
}

Result<Paused> decode_paused(const Json& json) {
  JsonReader r(json, "paused");
  Paused m;
  m.fence = read_fence(r);
  m.step = r.count("step");
  if (r.has("last")) {
    JsonReader last = r.object("last");
    m.last = read_commit(last);
  }
  m.evaluated = r.count("evaluated");
  m.checkpointed = r.count("checkpointed");
  return finish(r, std::move(m));
}

Json to_json(const Broken& m) {
  return {{"fence", fence_json(m.fence)}, {"reason", m.reason}};
}

Result<Broken> decode_broken(const Json& json) {
  JsonReader r(json, "broken");
  Broken m{read_fence(r), r.string("reason")};
  return finish(r, std::move(m));
}

Json to_json(const Heartbeat& m) {
  Json json = {{"step", m.step}, {"phase", m.phase}};
  if (m.quota_periods > 0) json["quotaPeriods"] = {m.throttled_periods, m.quota_periods};
  return json;
}

Result<Heartbeat> decode_heartbeat(const Json& json) {
  JsonReader r(json, "heartbeat");
  Heartbeat m{r.count("step"), r.string("phase")};
  if (const std::vector<std::int64_t> periods = counts(r, "quotaPeriods"); periods.size() == 2) {
    m.throttled_periods = periods[0];
    m.quota_periods = periods[1];
  }
  return finish(r, m);
}

Json to_json(const Evaluated& m) {
  return {{"step", m.step},       {"epoch", m.epoch},     {"lossSum", m.loss_sum},
          {"correct", m.correct}, {"samples", m.samples}, {"seconds", m.seconds}};
}

Result<Evaluated> decode_evaluated(const Json& json) {
  JsonReader r(json, "evaluated");
  Evaluated m;
  m.step = r.count("step");
  m.epoch = r.count("epoch");
  m.loss_sum = r.number("lossSum", 0);
  m.correct = r.count("correct");
  m.samples = r.count("samples");
  m.seconds = r.number("seconds", 0);
  return finish(r, m);
}

Json to_json(const Checkpointed& m) {
  return {{"step", m.step},
          {"directory", m.directory},
          {"bytes", m.bytes},
          {"seconds", m.seconds},
          {"error", m.error}};
}

Result<Checkpointed> decode_checkpointed(const Json& json) {
  JsonReader r(json, "checkpointed");
  Checkpointed m;
  m.step = r.count("step");
  m.directory = r.string("directory");
  m.bytes = r.count("bytes");
  m.seconds = r.number("seconds", 0);
  m.error = r.string("error");
  return finish(r, m);
}

Json to_json(const StopRequest& m) {
  return {{"reason", m.reason}};
}

Result<StopRequest> decode_stop_request(const Json& json) {
  JsonReader r(json, "stop request");
  StopRequest m{r.string("reason")};
  return finish(r, m);
}

Json to_json(const Failure& m) {
  return {{"exitCode", m.exit_code}, {"reason", m.reason}, {"step", m.step}};
}

Result<Failure> decode_failure(const Json& json) {
  JsonReader r(json, "failure");
  Failure m{static_cast<int>(r.integer("exitCode", 70, 1, 255)), r.string("reason"), r.count("step")};
  return finish(r, m);
}

Json to_json(const Abort& m) {
  return {{"reason", m.reason}, {"culprit", m.culprit}};
}

Result<Abort> decode_abort(const Json& json) {
  JsonReader r(json, "abort");
  Abort m{r.string("reason"), static_cast<int>(r.integer("culprit", -1, -1, 65535))};
  return finish(r, m);
}

Json to_json(const Finish& m) {
  return {{"completed", m.completed}, {"reason", m.reason}};
}

Result<Finish> decode_finish(const Json& json) {
  JsonReader r(json, "finish");
  Finish m{r.boolean("completed"), r.string("reason")};
  return finish(r, m);
}

Json to_json(const Refused& m) {
  return {{"exitCode", m.exit_code}, {"reason", m.reason}};
}

Result<Refused> decode_refused(const Json& json) {
  JsonReader r(json, "refused");
  Refused m{static_cast<int>(r.integer("exitCode", 75, 1, 255)), r.string("reason")};
  return finish(r, m);
}

}  // namespace evenkeel::contract
