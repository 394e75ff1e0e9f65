// A node without machines: watches the pods of TrainingJobs and does to each what its script says, in milliseconds, for
// thousands of them. Made by tests (in process) and by main.cpp. All functions are thread safe; its threads are joined
// when it is destroyed.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "operator/kube/credentials.h"
#include "tests/support/hollow_node/script.h"

namespace evenkeel::support {

struct HollowOptions {
  HollowScript script;
  std::string name_space;  // empty: all
  int connections = 8;     // requests at once
};

struct HollowCounts {
  std::size_t pods = 0;       // known now
  std::uint64_t patches = 0;  // of status, answered
  std::uint64_t removed = 0;  // terminating pods ended
  std::uint64_t failed = 0;   // requests that did not work and were tried again
};

class HollowNode {
 public:
  static base::Result<std::unique_ptr<HollowNode>> start(oper::AccessConfig access, HollowOptions options);
  virtual ~HollowNode() = default;
  // For all pods from now on, also for those that run; what has happened stays.
  virtual void set_script(HollowScript script) = 0;
  virtual HollowCounts counts() const = 0;
};

}  // namespace evenkeel::support
