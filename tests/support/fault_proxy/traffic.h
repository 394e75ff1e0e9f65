// What all connections of one proxy share: the plan, the counts and the log. Thread safe.
#pragma once

#include <atomic>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "tests/support/fault_proxy/proxy.h"

namespace evenkeel::support {

class Traffic {
 public:
  Traffic(FaultPlan plan, const std::string& log_file);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  void set_plan(FaultPlan plan);
  void release();
  RequestCount count_in(const RequestFacts& request);
  std::uint64_t count(const std::string& verb, const std::string& kind) const;
  // Asked again for as long as something is held back: the plan may change.
  Fault decide(const RequestFacts& request, RequestCount count) const;
  void add(ProxyEntry entry);
  std::vector<ProxyEntry> entries() const;
  double seconds() const { return base::seconds(base::real_clock().now() - begin_); }

 private:
  const base::MonotonicTime begin_ = base::real_clock().now();
  mutable std::mutex mutex_;
  FaultPlan plan_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> of_kind_;  // verb, kind
  std::map<std::string, std::uint64_t> of_object_;
  std::deque<ProxyEntry> entries_;
  std::FILE* file_ = nullptr;
};

}  // namespace evenkeel::support
