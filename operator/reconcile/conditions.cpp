#include "operator/reconcile/conditions.h"

#include "operator/reconcile/text.h"

namespace evenkeel::oper {

Conditions decode_conditions(const Json& list) {
  Conditions conditions;
  if (!list.is_array()) return conditions;
  for (const Json& item : list) {
    const std::string type = base::string_at(item, "type");
    if (type.empty()) continue;
    conditions[type] = {base::string_at(item, "status") == "True", base::string_at(item, "reason"),
                        base::string_at(item, "message"), base::string_at(item, "lastTransitionTime"),
                        base::int_at(item, "observedGeneration")};
  }
  return conditions;
}

Json to_json(const Conditions& conditions) {
  Json list = Json::array();
  for (const auto& [type, condition] : conditions) {
    list.push_back({{"type", type},
                    {"status", condition.status ? "True" : "False"},
                    {"observedGeneration", condition.observed_generation},
                    {"lastTransitionTime", condition.last_transition_time},
                    {"reason", condition.reason},
                    {"message", condition.message}});
  }
  return list;
}

void set_condition(Conditions& conditions, const char* type, const ConditionText& text,
                   std::int64_t generation, WallTimeValue now) {
  const auto known = conditions.find(type);
  const bool changed = known == conditions.end() || known->second.status != text.status ||
                       known->second.last_transition_time.empty();
  Condition next{text.status, text.reason, fit_text(text.message), "", generation};
  next.last_transition_time = changed ? base::to_rfc3339(now) : known->second.last_transition_time;
  conditions[type] = std::move(next);
}

bool is_true(const Conditions& conditions, const char* type) {
  const auto known = conditions.find(type);
  return known != conditions.end() && known->second.status;
}

std::string reason_of(const Conditions& conditions, const char* type) {
  const auto known = conditions.find(type);
  return known == conditions.end() ? "" : known->second.reason;
}

}  // namespace evenkeel::oper
