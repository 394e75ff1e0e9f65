// A small API server with one TrainingJob in it, moved by hand: reconcile's requests are applied, pods are
// stepped, time is advanced, and after any write the operator may "crash". Reads as a timeline. Tests only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "contract/report.h"
#include "operator/reconcile/reconcile.h"

namespace evenkeel::oper {

struct Crash {};  // thrown after the n-th write, which is committed

class ClusterFake {
 public:
  // The short manifest (4 workers) with a JSON merge patch on its spec.
  explicit ClusterFake(const std::string& spec_patch = "{}");

  // One run of reconcile, and what it asks for.
  Decision step();
  // Steps until nothing is asked for. A crash is followed by a new operator that remembers nothing.
  ClusterFake& settle();
  ClusterFake& crash_after(int writes) {
    writes_left_ = writes;
    return *this;
  }
  ClusterFake& forget();  // a new operator, which remembers nothing
  ClusterFake& advance(int seconds) {
    now += std::chrono::seconds(seconds);
    return *this;
  }
  ClusterFake& patch_spec(const std::string& patch);  // as an edit: raises the generation

  // Pods, by name without the incarnation: "t-worker-0". The newest of that name.
  Json& pod(const std::string& host_name);
  const Json& pod(const std::string& host_name) const;
  std::int64_t incarnation_of(const std::string& host_name) const;  // 0: there is none
  bool has_pod(const std::string& host_name) const;
  ClusterFake& run(const std::string& host_name);  // phase Running
  ClusterFake& run_all();
  ClusterFake& exit(const std::string& host_name, int code, const std::string& message = "");
  ClusterFake& erase_pod(const std::string& host_name);   // gone without a trace
  ClusterFake& delete_pod(const std::string& host_name);  // somebody's kubectl delete
  // The node is gone: its pod is told to go and stays Terminating for ever.
  ClusterFake& lose_node_of(const std::string& host_name);
  ClusterFake& end_deleted();  // the kubelet is done: deleted pods go
  // The coordinator says that all ranks whose pod runs have joined; settled.
  ClusterFake& join_all(std::int64_t step = 10);
  // The coordinator of today says this of the pods that run.
  contract::JobReport make_report(contract::JobStage stage, std::int64_t step) const;

  const Json& status() const { return job.status_json; }
  std::string phase() const;
  std::string condition(const std::string& type) const;  // "True", "False" or ""
  std::string condition_reason(const std::string& type) const;
  std::string condition_message(const std::string& type) const;
  std::int64_t attempt() const;
  int count(const std::string& what) const;  // "create Pod", "delete Pod", ...
  bool has_event(const std::string& reason) const;
  std::string end_state() const;  // phase, counters, kinds of children: what must not depend on crashes

  contract::TrainingJob job;
  WallTimeValue now{};
  std::vector<Json> pods, services, config_maps;
  bool secret_exists = false;
  bool job_deleted = false;
  bool keep_deleted = false;  // deleted pods stay Terminating until end_deleted()
  std::optional<contract::JobReport> report;
  std::vector<std::string> lost_pods;                 // UIDs that no end_deleted() ends
  std::map<std::string, std::string> refuse_creates;  // "Pod/t-worker-0-1" -> the server's words
  std::vector<std::string> log;                       // "create Pod t-worker-0-1"
  std::vector<EventNote> events;
  std::vector<std::string> broken;  // invariants that did not hold
  ReconcileOptions options;

 private:
  bool apply(const Request& request);  // false: refused, and the rest of the list is not tried
  bool create(const Request& request);
  void patch(const Request& request);
  std::vector<Json>& list_of(const std::string& kind);
  void remove(const Request& request);
  void wrote();
  bool is_lost(const Json& pod) const;  // told to go, on a node that is gone
  Observed observe() const;

  int writes_left_ = -1;
  int next_uid_ = 1;
  std::int64_t secret_attempt_ = 0, key_lost_attempt_ = 0;
  std::map<std::string, std::string> create_errors_;
};

}  // namespace evenkeel::oper
