#include "tests/support/hollow_node/pod_queue.h"

#include <algorithm>

namespace evenkeel::support {

void PodQueue::add(const std::string& uid, base::MonotonicTime due) {
  const std::lock_guard lock(mutex_);
  if (busy_.contains(uid)) {
    const auto [at, fresh] = again_.emplace(uid, due);
    at->second = std::min(at->second, due);
    return;
  }
  const auto held = due_.find(uid);
  if (held != due_.end()) {
    if (held->second <= due) return;
    order_.erase({held->second, uid});
  }
  due_[uid] = due;
  order_.emplace(due, uid);
  changed_.notify_one();
}

std::optional<std::string> PodQueue::take() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (order_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const base::MonotonicTime due = order_.begin()->first;
    if (base::real_clock().now() < due) {
      changed_.wait_until(lock, due);
      continue;
    }
    std::string uid = order_.begin()->second;
    order_.erase(order_.begin());
    due_.erase(uid);
    busy_.insert(uid);
    return uid;
  }
  return std::nullopt;
}

void PodQueue::done(const std::string& uid) {
  std::optional<base::MonotonicTime> due;
  {
    const std::lock_guard lock(mutex_);
    busy_.erase(uid);
    const auto again = again_.find(uid);
    if (again == again_.end()) return;
    due = again->second;
    again_.erase(again);
  }
  add(uid, *due);
}

void PodQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

}  // namespace evenkeel::support
