// The record of all that happens in one API server, and the judges' verdict on it. Owned by ApiServer, one thread.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/client.h"
#include "tests/support/invariants/recorder/recorder.h"

namespace evenkeel::oper {

class JudgedRun {
 public:
  // `folder`: where apiserver-only keeps its audit log and the operators their logs.
  JudgedRun(ApiClient& client, std::filesystem::path folder);
  // The writes of this process are the operator's.
  void add_operator(int pid);
  // What was not told before, one line each; "" if all invariants hold. `metrics` is a page of the operator.
  std::string new_violations(const std::string& metrics);
  void stop() { recorder_.reset(); }

 private:
  const std::filesystem::path folder_;
  std::vector<std::string> agents_;
  std::set<std::string> told_;
  std::unique_ptr<EventRecorder> recorder_;
};

}  // namespace evenkeel::oper
