#include "operator/runtime/work_queue.h"

#include <algorithm>

namespace evenkeel::oper {
namespace {

constexpr base::Duration kFirstDelay = std::chrono::milliseconds(5);
constexpr base::Duration kLongestDelay = std::chrono::seconds(1000);
constexpr int kMostDoublings = 18;  // 5 ms * 2^18 is over 1000 s

}  // namespace

WorkQueue::WorkQueue(base::Clock& clock, QueueObserver* observer) : clock_(clock), observer_(observer) {}

void WorkQueue::add_locked(const std::string& key) {
  if (!dirty_.emplace(key, clock_.now()).second) return;
  if (!processing_.contains(key)) ready_.push_back(key);
}

void WorkQueue::add(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    add_locked(key);
  }
  if (observer_) observer_->queue_added();
  changed_.notify_one();
}

void WorkQueue::add_after(const std::string& key, base::Duration delay) {
  if (delay <= base::Duration{0}) return add(key);
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    const base::MonotonicTime due = clock_.now() + delay;
    const auto [entry, is_new] = delayed_.emplace(key, due);
    if (!is_new) entry->second = std::min(entry->second, due);
  }
  changed_.notify_one();
}

void WorkQueue::retry(const std::string& key) {
  base::Duration delay;
  {
    const std::lock_guard lock(mutex_);
    int& failures = failures_[key];
    delay = std::min<base::Duration>(kLongestDelay, kFirstDelay * (1 << std::min(failures, kMostDoublings)));
    ++failures;
  }
  if (observer_) observer_->queue_retried();
  add_after(key, std::max(delay, overall_.reserve(clock_.now())));
}

void WorkQueue::forget_failures(const std::string& key) {
  const std::lock_guard lock(mutex_);
  failures_.erase(key);
}

void WorkQueue::move_due_locked(base::MonotonicTime now) {
  for (auto entry = delayed_.begin(); entry != delayed_.end();) {
    if (entry->second > now) {
      ++entry;
      continue;
    }
    add_locked(entry->first);
    entry = delayed_.erase(entry);
  }
}

std::optional<std::string> WorkQueue::take_locked(base::MonotonicTime now, double& waited) {
  move_due_locked(now);
  if (ready_.empty()) return std::nullopt;
  std::string key = std::move(ready_.front());
  ready_.pop_front();
  const auto since = dirty_.find(key);
  waited = base::seconds(now - since->second);
  dirty_.erase(since);
  processing_[key] = now;
  return key;
}

std::optional<std::string> WorkQueue::try_take() {
  double waited = 0;
  std::optional<std::string> key;
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) key = take_locked(clock_.now(), waited);
  }
  if (key && observer_) observer_->queue_started(waited);
  return key;
}

std::optional<std::string> WorkQueue::take() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const base::MonotonicTime now = clock_.now();
    double waited = 0;
    if (auto key = take_locked(now, waited)) {
      lock.unlock();
      if (observer_) observer_->queue_started(waited);
      return key;
    }
    base::Duration wait = std::chrono::seconds(1);
    for (const auto& [key, due] : delayed_) wait = std::min(wait, due - now);
    changed_.wait_for(lock, std::max<base::Duration>(wait, std::chrono::milliseconds(1)));
  }
  return std::nullopt;
}

void WorkQueue::done(const std::string& key) {
  double worked = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = processing_.find(key);
    if (entry == processing_.end()) return;
    worked = base::seconds(clock_.now() - entry->second);
    processing_.erase(entry);
    if (dirty_.contains(key)) ready_.push_back(key);
  }
  if (observer_) observer_->queue_finished(worked);
  changed_.notify_one();
}

void WorkQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

std::size_t WorkQueue::depth() const {
  const std::lock_guard lock(mutex_);
  return ready_.size();
}

double WorkQueue::unfinished_seconds() const {
  const std::lock_guard lock(mutex_);
  double sum = 0;
  for (const auto& [key, since] : processing_) sum += base::seconds(clock_.now() - since);
  return sum;
}

double WorkQueue::longest_running_seconds() const {
  const std::lock_guard lock(mutex_);
  double longest = 0;
  for (const auto& [key, since] : processing_)
    longest = std::max(longest, base::seconds(clock_.now() - since));
  return longest;
}

}  // namespace evenkeel::oper
