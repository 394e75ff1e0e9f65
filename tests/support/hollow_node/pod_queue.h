// Which pod is looked at next: keys with a due time, never two looks at one pod at once. Used by node.cpp; thread safe.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"

namespace evenkeel::support {

class PodQueue {
 public:
  // Looked at not later than `due`; at once after the look that is going on.
  void add(const std::string& uid, base::MonotonicTime due);
  // Blocks until one is due; nothing after stop().
  std::optional<std::string> take();
  void done(const std::string& uid);
  void stop();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::pair<base::MonotonicTime, std::string>> order_;
  std::map<std::string, base::MonotonicTime> due_;
  std::set<std::string> busy_;
  std::map<std::string, base::MonotonicTime> again_;  // asked for while busy
  bool stopped_ = false;
};

}  // namespace evenkeel::support
