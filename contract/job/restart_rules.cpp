#include "contract/job/restart_rules.h"

#include <algorithm>

namespace evenkeel::contract {

RestartAction action_for(const RestartSpec& restart, int exit_code) {
  const auto names_it = [&](const RestartRule& rule) {
    return std::ranges::find(rule.on_exit_codes, exit_code) != rule.on_exit_codes.end();
  };
  const auto rule = std::ranges::find_if(restart.rules, names_it);
  return rule == restart.rules.end() ? RestartAction::kRestart : rule->action;
}

}  // namespace evenkeel::contract
