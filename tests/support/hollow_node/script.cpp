#include "tests/support/hollow_node/script.h"

#include <algorithm>
#include <charconv>

#include "base/json_reader.h"
#include "contract/labels.h"

namespace evenkeel::support {
namespace {

using base::Json;
using base::JsonReader;

constexpr std::pair<Fate, const char*> kFates[] = {{Fate::kRun, "run"},
                                                   {Fate::kExit, "exit"},
                                                   {Fate::kNeverReady, "neverReady"},
                                                   {Fate::kNeverScheduled, "neverScheduled"},
                                                   {Fate::kEvicted, "evicted"},
                                                   {Fate::kNodeLost, "nodeLost"}};

std::optional<std::int64_t> number_at(JsonReader& json, std::string_view key) {
  return json.has(key) ? std::optional(json.count(key)) : std::nullopt;
}

HollowRule read_rule(JsonReader& json) {
  std::vector<std::string_view> fates;
  for (const auto& [fate, name] : kFates) fates.push_back(name);
  HollowRule rule;
  rule.name_space = json.string("namespace");
  rule.job = json.string("job");
  rule.role = json.string("role");
  rule.rank = number_at(json, "rank");
  rule.attempt = number_at(json, "attempt");
  rule.incarnation = number_at(json, "incarnation");
  rule.once = json.boolean("once");
  rule.behaviour.fate = kFates[json.require("do").one_of("do", fates, 0)].first;
  rule.behaviour.after_ms = json.count("afterMs");
  rule.behaviour.exit_code = static_cast<int>(json.integer("exitCode", 0, 0, 255));
  rule.behaviour.message = json.string("message");
  return rule;
}

std::int64_t label_number(const Json& labels, const char* name) {
  const std::string text = base::string_at(labels, name);
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Json condition(const char* type, bool is_true, const std::string& reason, const std::string& now) {
  return {{"type", type}, {"status", is_true ? "True" : "False"}, {"reason", reason}, {"lastTransitionTime", now}};
}

Json container(bool ready, Json state) {
  return Json::array({{{"name", contract::kContainerName},
                       {"image", "hollow"},
                       {"imageID", ""},
                       {"ready", ready},
                       {"restartCount", 0},
                       {"state", std::move(state)}}});
}

Json running_status(bool ready, const PodMoment& moment) {
  return {{"phase", "Running"},
          {"podIP", moment.ip},
          {"podIPs", Json::array({{{"ip", moment.ip}}})},
          {"startTime", moment.now},
          {"conditions", Json::array({condition("Ready", ready, ready ? "" : "ContainersNotReady", moment.now)})},
          {"containerStatuses", container(ready, {{"running", {{"startedAt", moment.now}}}})}};
}

Json ended_status(int exit_code, const std::string& message, Json conditions, const PodMoment& moment) {
  const bool succeeded = exit_code == 0;
  return {{"phase", succeeded ? "Succeeded" : "Failed"},
          {"conditions", std::move(conditions)},
          {"containerStatuses", container(false, {{"running", nullptr},
                                                  {"terminated",
                                                   {{"exitCode", exit_code},
                                                    {"reason", succeeded ? "Completed" : "Error"},
                                                    {"message", message},
                                                    {"finishedAt", moment.now}}}})}};
}

Decision patch(Json status) {
  return {Step::kPatchStatus, 0, std::move(status)};
}

// Nothing where the time has come.
std::optional<Decision> wait_until(std::int64_t when_ms, std::int64_t now_ms) {
  if (now_ms >= when_ms) return std::nullopt;
  return Decision{Step::kWait, when_ms - now_ms, {}};
}

Decision decide_running(const PodFacts& pod, const Behaviour& behaviour, const PodMoment& moment) {
  if (behaviour.fate != Fate::kExit && behaviour.fate != Fate::kEvicted && behaviour.fate != Fate::kNodeLost) return {};
  if (auto wait = wait_until(behaviour.after_ms, moment.running_ms)) return *wait;
  const Json not_ready = condition("Ready", false, "PodFailed", moment.now);
  if (behaviour.fate == Fate::kExit)
    return patch(ended_status(behaviour.exit_code, behaviour.message, Json::array({not_ready}), moment));
  if (behaviour.fate == Fate::kEvicted) {
    Json status = ended_status(
        137, behaviour.message,
        Json::array({not_ready, condition("DisruptionTarget", true, "EvictionByEvictionAPI", moment.now)}), moment);
    status["reason"] = "Evicted";
    return patch(std::move(status));
  }
  // The taint manager first marks the pod, then deletes it; nobody is left to end it.
  if (pod.disrupted) return {Step::kDelete, 0, {}};
  return patch({{"conditions", Json::array({condition("Ready", false, "NodeNotReady", moment.now),
                                            condition("DisruptionTarget", true, "DeletionByTaintManager", moment.now)})}});
}

}  // namespace

base::Result<HollowScript> parse_script(const Json& json) {
  JsonReader root(json, "script");
  HollowScript script;
  script.start_ms = root.count("startMs");
  script.terminate_ms = root.count("terminateMs");
  script.bind = root.boolean("bind");
  script.pod_ip = root.string("podIP");
  for (JsonReader& rule : root.array("rules")) script.rules.push_back(read_rule(rule));
  EVENKEEL_TRY(root.finish());
  return script;
}

PodFacts facts_of_pod(const Json& pod) {
  const Json& metadata = base::child(pod, "metadata");
  const Json& labels = base::child(metadata, "labels");
  const Json& status = base::child(pod, "status");
  PodFacts facts;
  facts.uid = base::string_at(metadata, "uid");
  facts.name = base::string_at(metadata, "name");
  facts.name_space = base::string_at(metadata, "namespace");
  facts.job = base::string_at(labels, contract::kLabelJobName);
  facts.job_uid = base::string_at(labels, contract::kLabelJobUid);
  facts.role = base::string_at(labels, contract::kLabelRole);
  facts.rank = label_number(labels, contract::kLabelRank);
  facts.attempt = label_number(labels, contract::kLabelAttempt);
  facts.incarnation = label_number(labels, contract::kLabelIncarnation);
  facts.phase = base::string_at(status, "phase", "Pending");
  facts.bound = !base::string_at(base::child(pod, "spec"), "nodeName").empty();
  facts.deleting = !base::string_at(metadata, "deletionTimestamp").empty();
  for (const Json& one : base::child(status, "conditions"))
    if (base::string_at(one, "type") == "DisruptionTarget" && base::string_at(one, "status") == "True")
      facts.disrupted = true;
  return facts;
}

std::optional<std::size_t> choose_rule(const HollowScript& script, const PodFacts& pod, const RuleUses& uses) {
  const auto fits = [](const auto& wanted, const auto& is) { return !wanted || *wanted == is; };
  const auto fits_text = [](const std::string& wanted, const std::string& is) { return wanted.empty() || wanted == is; };
  for (std::size_t i = 0; i < script.rules.size(); ++i) {
    const HollowRule& rule = script.rules[i];
    if (!fits_text(rule.name_space, pod.name_space) || !fits_text(rule.job, pod.job) || !fits_text(rule.role, pod.role) ||
        !fits(rule.rank, pod.rank) || !fits(rule.attempt, pod.attempt) || !fits(rule.incarnation, pod.incarnation))
      continue;
    if (rule.once && uses.contains({i, pod.job_uid})) continue;
    return i;
  }
  return std::nullopt;
}

Decision decide(const PodFacts& pod, const Behaviour& behaviour, const HollowScript& script, const PodMoment& moment) {
  if (pod.deleting) {
    if (behaviour.fate == Fate::kNodeLost && pod.disrupted) return {};
    if (auto wait = wait_until(script.terminate_ms, moment.deleting_ms)) return *wait;
    return {Step::kRemove, 0, {}};
  }
  if (pod.phase == "Succeeded" || pod.phase == "Failed" || behaviour.fate == Fate::kNeverScheduled) return {};
  if (pod.phase == "Running") return decide_running(pod, behaviour, moment);
  if (auto wait = wait_until(script.start_ms, moment.seen_ms)) return *wait;
  if (!pod.bound && (script.bind || behaviour.fate == Fate::kNodeLost)) return {Step::kBind, 0, {}};
  return patch(running_status(behaviour.fate != Fate::kNeverReady, moment));
}

std::string pod_ip(std::uint64_t n) {
  const std::uint64_t host = n + 1;
  return "10." + std::to_string(host >> 16 & 255) + "." + std::to_string(host >> 8 & 255) + "." + std::to_string(host & 255);
}

}  // namespace evenkeel::support
