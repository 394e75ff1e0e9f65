// I1 and I6: which pods of a job are there together.
#include <tuple>

#include "contract/labels.h"
#include "tests/support/invariants/judge.h"
#include "tests/support/invariants/view.h"

namespace evenkeel::invariants {
namespace {

using contract::kLabelAttempt;
using contract::kLabelIncarnation;
using Place = std::tuple<std::string, std::string, std::string, std::string>;  // job, attempt, role, rank
using Incarnation = std::tuple<std::string, std::string, std::string, std::int64_t>;

Place place_of(const Change& pod) {
  return {job_uid(pod.object), label(pod.object, kLabelAttempt), label(pod.object, contract::kLabelRole),
          label(pod.object, contract::kLabelRank)};
}

bool is_pod_of_a_job(const Change& change) {
  return change.kind == "Pod" && is_child(change);
}

// Pods that hold a place, by place. A pod that is going has left it.
class Places {
 public:
  explicit Places(const Facts& facts) : facts_(facts) {}
  // The other pod that holds this one's place, "" if there is none.
  std::string take(const Change& pod) {
    std::map<std::string, std::string>& here = holders_[place_of(pod)];
    here.erase(pod.uid);
    if (!holds_its_place(pod, facts_) || terminating(pod.object)) return "";
    const std::string other = here.empty() ? "" : here.begin()->second;
    here[pod.uid] = pod.name;
    return other;
  }

 private:
  const Facts& facts_;
  std::map<Place, std::map<std::string, std::string>> holders_;
};

// Creates = places x attempts + recorded replacements: each pod bears an incarnation that the status had before, and
// no place has one incarnation twice.
class Incarnations {
 public:
  void on_job(const Change& job) {
    recorded_[job.uid] = base::int_at(base::child(job.object, "status"), "incarnation");
  }
  std::string on_new_pod(const Change& pod) {
    const std::int64_t number = label_number(pod.object, kLabelIncarnation);
    const std::string job = job_uid(pod.object);
    if (number > recorded_[job])
      return "incarnation " + std::to_string(number) + " was created when the status had " +
             std::to_string(recorded_[job]);
    const Incarnation key{job, label(pod.object, contract::kLabelRole), label(pod.object, contract::kLabelRank),
                          number};
    const auto [known, is_new] = made_.emplace(key, pod.uid);
    return is_new || known->second == pod.uid ? "" : "this incarnation was created before, as " + known->second;
  }

 private:
  std::map<std::string, std::int64_t> recorded_;
  std::map<Incarnation, std::string> made_;
};

// A pod that is going may still run, so it counts until it is gone.
class Attempts {
 public:
  explicit Attempts(const Facts& facts) : facts_(facts) {}
  // A pod of another attempt that is there too, "" if there is none.
  std::string take(const Change& pod) {
    auto& pods = pods_[job_uid(pod.object)];
    if (!holds_its_place(pod, facts_)) {
      pods.erase(pod.uid);
      return "";
    }
    const std::string attempt = label(pod.object, kLabelAttempt);
    pods[pod.uid] = {attempt, pod.name};
    for (const auto& [uid, other] : pods)
      if (other.first != attempt) return other.second + " of attempt " + other.first;
    return "";
  }

 private:
  const Facts& facts_;
  std::map<std::string, std::map<std::string, std::pair<std::string, std::string>>> pods_;
};

}  // namespace

Violations one_pod_for_each_rank(const Trace& trace) {
  Violations found;
  Places places(trace.facts);
  Incarnations incarnations;
  for (const Change& change : trace.changes) {
    if (is_job(change)) incarnations.on_job(change);
    if (!is_pod_of_a_job(change)) continue;
    const std::string other = places.take(change);
    if (!other.empty())
      found.push_back({"I1", "two pods hold one rank, the other is " + other, where(change), object_of(change)});
    const std::string why = change.type == "ADDED" ? incarnations.on_new_pod(change) : "";
    if (!why.empty()) found.push_back({"I1", why, where(change), object_of(change)});
  }
  return found;
}

// Told once for each pod that comes while another attempt is there; what happens to it then says nothing new.
Violations attempts_never_run_together(const Trace& trace) {
  Violations found;
  Attempts attempts(trace.facts);
  for (const Change& change : trace.changes) {
    if (!is_pod_of_a_job(change)) continue;
    const std::string other = attempts.take(change);
    if (!other.empty() && change.type == "ADDED")
      found.push_back({"I6", "it came while there was " + other, where(change), object_of(change)});
  }
  return found;
}

}  // namespace evenkeel::invariants
