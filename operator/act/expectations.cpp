#include "operator/act/expectations.h"

#include <algorithm>

namespace evenkeel::oper {

void Expectations::expect(const std::string& job_uid, const std::string& uid, bool removal,
                          base::MonotonicTime now, const std::function<bool()>& already) {
  {
    const std::lock_guard lock(mutex_);
    jobs_[job_uid].objects[uid] = {removal, now + patience_};
    job_of_[uid] = job_uid;
  }
  // Note first, ask second: an event between the two meets the note, an earlier one meets the question.
  if (already()) saw(uid, removal);
}

void Expectations::created(const std::string& job_uid, const std::string& uid, base::MonotonicTime now,
                           const std::function<bool()>& already_seen) {
  expect(job_uid, uid, false, now, already_seen);
}

void Expectations::deleted(const std::string& job_uid, const std::string& uid, base::MonotonicTime now,
                           const std::function<bool()>& already_gone) {
  expect(job_uid, uid, true, now, already_gone);
}

void Expectations::status_written(const std::string& job_uid, const std::string& version,
                                  base::MonotonicTime now, const std::function<bool()>& already_seen) {
  {
    const std::lock_guard lock(mutex_);
    Job& job = jobs_[job_uid];
    job.version = version;
    job.version_until = now + patience_;
  }
  if (!already_seen()) return;
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_uid);
  if (job != jobs_.end() && job->second.version == version) job->second.version.clear();
}

void Expectations::saw(const std::string& uid, bool gone) {
  const std::lock_guard lock(mutex_);
  const auto owner = job_of_.find(uid);
  if (owner == job_of_.end()) return;
  Job& job = jobs_[owner->second];
  const auto expected = job.objects.find(uid);
  // A pod that was seen alive does not satisfy "it goes"; one that is going was there.
  if (expected != job.objects.end() && expected->second.removal && !gone) return;
  job.objects.erase(uid);
  job_of_.erase(owner);
}

void Expectations::saw_job(const std::string& job_uid,
                           const std::function<bool(const std::string&)>& reached) {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_uid);
  if (job != jobs_.end() && !job->second.version.empty() && reached(job->second.version))
    job->second.version.clear();
}

Expectations::State Expectations::state(const std::string& job_uid, base::MonotonicTime now) const {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_uid);
  if (job == jobs_.end() || job->second.empty()) return State::kSatisfied;
  if (!job->second.version.empty() && now >= job->second.version_until) return State::kExpired;
  for (const auto& [uid, expected] : job->second.objects)
    if (now >= expected.until) return State::kExpired;
  return State::kWaiting;
}

base::Duration Expectations::remaining(const std::string& job_uid, base::MonotonicTime now) const {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_uid);
  if (job == jobs_.end()) return base::Duration{0};
  base::MonotonicTime first = now + patience_;
  if (!job->second.version.empty()) first = std::min(first, job->second.version_until);
  for (const auto& [uid, expected] : job->second.objects) first = std::min(first, expected.until);
  return std::max(base::Duration{0}, first - now);
}

void Expectations::listed(const std::string& job_uid, const std::function<bool(const std::string&)>& present,
                          base::MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_uid);
  if (job == jobs_.end()) return;
  // The job itself was read live; a stale cached copy is caught by the resourceVersion of the next status
  // write.
  job->second.version.clear();
  for (auto entry = job->second.objects.begin(); entry != job->second.objects.end();) {
    // A removal that was answered will show in the cache in any case; a creation only if the object is there.
    if (entry->second.removal || present(entry->first)) {
      entry->second.until = now + patience_;
      ++entry;
    } else {
      job_of_.erase(entry->first);
      entry = job->second.objects.erase(entry);
    }
  }
}

void Expectations::forget(const std::string& job_uid) {
  const std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_uid);
  if (job == jobs_.end()) return;
  for (const auto& [uid, expected] : job->second.objects) job_of_.erase(uid);
  jobs_.erase(job);
}

}  // namespace evenkeel::oper
