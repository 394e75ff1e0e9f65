#include "operator/reconcile/restart_policy.h"

#include <algorithm>

#include "contract/exit_codes.h"

namespace evenkeel::oper {
namespace {

using contract::RestartAction;
using contract::RestartRule;

constexpr std::chrono::seconds kSettle{5};  // status of pods of one incident arrives within this
constexpr std::chrono::seconds kLongestDelay{300};
constexpr std::chrono::minutes kHealthy{10};  // the next failure is no repetition of the last one
constexpr int kTryAgain = static_cast<int>(contract::ExitCode::kTryAgain);

const char* action_name(RestartAction action) {
  switch (action) {
    case RestartAction::kRestart:
      return "Restart";
    case RestartAction::kRestartIgnoringLimit:
      return "RestartIgnoringLimit";
    case RestartAction::kFailJob:
      return "FailJob";
  }
  return "";
}

bool matches(const RestartRule& rule, const Failure& failure) {
  if (rule.on_disruption && failure.disruption) return true;
  return failure.exit_code && std::find(rule.on_exit_codes.begin(), rule.on_exit_codes.end(),
                                        *failure.exit_code) != rule.on_exit_codes.end();
}

std::string words(const RestartRule& rule, std::size_t index) {
  std::string text = "restart.rules[" + std::to_string(index) + "] (";
  if (rule.on_disruption) text += "onDisruption";
  for (std::size_t i = 0; i < rule.on_exit_codes.size(); ++i) {
    text += (i == 0 ? "onExitCodes " : ", ") + std::to_string(rule.on_exit_codes[i]);
  }
  return text + ") says " + action_name(rule.action);
}

// Without a rule: the one that did not only lose a peer.
std::size_t likely_cause(const std::vector<Failure>& failures) {
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (failures[i].exit_code != kTryAgain) return i;
  }
  return 0;
}

}  // namespace

Verdict judge(const contract::RestartSpec& restart, const std::vector<Failure>& failures) {
  for (std::size_t r = 0; r < restart.rules.size(); ++r) {
    for (std::size_t f = 0; f < failures.size(); ++f) {
      if (matches(restart.rules[r], failures[f]))
        return {restart.rules[r].action, f, words(restart.rules[r], r)};
    }
  }
  return {RestartAction::kRestart, likely_cause(failures), "no rule matches: Restart"};
}

std::optional<WallTimeValue> wait_for_cause(const std::vector<Failure>& failures,
                                            const std::vector<Pod>& pods, WallTimeValue now) {
  const bool all_ended = std::all_of(pods.begin(), pods.end(), [](const Pod& pod) { return pod.finished(); });
  if (failures.empty() || all_ended) return std::nullopt;
  std::optional<WallTimeValue> first;
  for (const Failure& failure : failures) {
    if (failure.disruption || failure.exit_code != kTryAgain || !failure.time) return std::nullopt;
    first = first ? std::min(*first, *failure.time) : *failure.time;
  }
  const WallTimeValue until = *first + kSettle;
  // A clock that differs from the node's must not make this long.
  if (until <= now || until > now + kSettle) return std::nullopt;
  return until;
}

std::chrono::seconds restart_delay(std::int64_t restarts_before, std::optional<WallTimeValue> running_since,
                                   WallTimeValue now) {
  if (restarts_before <= 0) return std::chrono::seconds(0);
  if (running_since && now - *running_since >= kHealthy) return std::chrono::seconds(0);
  const std::int64_t doublings = std::min<std::int64_t>(restarts_before - 1, 20);
  return std::min(kLongestDelay, std::chrono::seconds(std::int64_t{1} << doublings));
}

}  // namespace evenkeel::oper
