#include "tests/support/fault_proxy/traffic.h"

#include "base/time_text.h"

namespace evenkeel::support {
namespace {
constexpr std::size_t kMostEntries = 100'000;
}

base::Json to_json(const ProxyEntry& entry) {
  base::Json json{{"seconds", entry.seconds},
                  {"method", entry.request.method},
                  {"path", entry.request.path},
                  {"verb", entry.request.verb},
                  {"kind", entry.request.kind},
                  {"name", entry.request.name},
                  {"number", entry.count.of_kind},
                  {"number_of_object", entry.count.of_object},
                  {"action", action_name(entry.fault.action)},
                  {"status", entry.status},
                  {"delivered", entry.delivered}};
  if (entry.fault.action != Action::kPass) json["when"] = entry.fault.when == When::kBefore ? "before" : "after";
  return json;
}

Traffic::Traffic(FaultPlan plan, const std::string& log_file) : plan_(std::move(plan)) {
  if (!log_file.empty()) file_ = std::fopen(log_file.c_str(), "ae");
}

Traffic::~Traffic() {
  if (file_) std::fclose(file_);
}

void Traffic::set_plan(FaultPlan plan) {
  const std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
}

void Traffic::release() {
  const std::lock_guard lock(mutex_);
  plan_ = released(plan_);
}

RequestCount Traffic::count_in(const RequestFacts& request) {
  const std::string object = request.verb + " " + request.kind + " " + request.name_space + "/" + request.name;
  const std::lock_guard lock(mutex_);
  return {++of_kind_[{request.verb, request.kind}], ++of_object_[object]};
}

std::uint64_t Traffic::count(const std::string& verb, const std::string& kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = of_kind_.find({verb, kind});
  return found == of_kind_.end() ? 0 : found->second;
}

Fault Traffic::decide(const RequestFacts& request, RequestCount count) const {
  const std::lock_guard lock(mutex_);
  return what_to_do(plan_, request, count);
}

void Traffic::add(ProxyEntry entry) {
  const std::lock_guard lock(mutex_);
  if (file_) {
    base::Json json = to_json(entry);
    json["time"] = base::to_rfc3339(base::real_clock().wall_now());
    std::fprintf(file_, "%s\n", base::dump_json(json).c_str());
    std::fflush(file_);
  }
  entries_.push_back(std::move(entry));
  if (entries_.size() > kMostEntries) entries_.pop_front();
}

std::vector<ProxyEntry> Traffic::entries() const {
  const std::lock_guard lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

}  // namespace evenkeel::support
