// What the operator's cases play in: one operator, its job "t" in namespace "a", a clock moved by hand, and a queue
// that comes back when it was asked to or when a watch has brought something. Tests only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "contract/job/manifest_fixture.h"
#include "contract/job/validate.h"
#include "contract/labels.h"
#include "operator/runtime/process_fake.h"

namespace evenkeel::oper {

using MaybeReply = std::optional<HttpReply>;  // of FakeTransport::intercept: nothing is "as usual"

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class CasesWorld {
 public:
  using Failure = FakeApiServer::Failure;
  CasesWorld() { restart(); }

  void restart() {
    process = std::make_unique<Process>(transport, tokens, clock);
    due_ = clock.now();
  }
  // Dies after the n-th write from now on, which is committed and never answered.
  void kill_after(int n) {
    kill_at_ = server.writes() + n;
    server.fail_write(n, Failure::kCommittedNoReply);
  }

  static Json manifest(const std::string& name = "t", const Json& spec_patch = Json::object()) {
    Json object = contract::short_manifest();
    object["metadata"] = {{"name", name}, {"namespace", "a"}, {"generation", 1}};
    object["spec"].merge_patch(spec_patch);
    return object;
  }
  void create_job(const Json& spec_patch = Json::object()) {
    server.put("trainingjobs", manifest("t", spec_patch));
  }
  // As the API server does an edit: the generation rises.
  void edit(const Json& spec_patch) {
    Json object = job();
    object["spec"].merge_patch(spec_patch);
    object["metadata"]["generation"] = base::int_at(object["metadata"], "generation") + 1;
    server.put("trainingjobs", object);
  }

  void sync() {
    server.sync("trainingjobs", process->stores.jobs);
    if (!hold_pods) server.sync("pods", process->stores.pods);
    server.sync("services", process->stores.services);
    server.sync("configmaps", process->stores.config_maps);
  }
  RunReport run(const std::string& key = "a/t") {
    RunReport report = process->controller.run(key);
    if (!report.error.empty() && !report.quiet) loud.push_back(report.error);
    if (kill_at_ > 0 && server.writes() >= kill_at_) {
      kill_at_ = 0;
      restart();
    }
    return report;
  }
  // `tick` is called before each look at the watches.
  void run_for(base::Duration time, const std::function<void()>& tick = {}) {
    const base::MonotonicTime end = clock.now() + time;
    while (clock.now() < end) {
      if (tick) tick();
      if (!hold_watches) sync();
      if (process->woken || (due_ && *due_ <= clock.now())) {
        process->woken = false;
        plan(run());
      }
      clock.advance(kTick);
    }
  }

  bool has_job() const { return server.objects.contains("trainingjobs/a/t"); }
  Json job() const { return server.objects.at("trainingjobs/a/t"); }
  Json status() const { return base::child(job(), "status"); }
  std::string phase() const { return base::string_at(status(), "phase"); }
  Json condition(const std::string& type) const {
    const Json all = status();
    for (const Json& one : base::child(all, "conditions"))
      if (base::string_at(one, "type") == type) return one;
    return Json::object();
  }
  std::string words_of(const std::string& type) const { return base::string_at(condition(type), "message"); }
  std::string state_of(const std::string& type) const { return base::string_at(condition(type), "status"); }
  std::int64_t restarts() const { return base::int_at(base::child(status(), "restarts"), "total"); }
  std::vector<std::string> pods() const { return server.names("pods"); }
  std::set<std::string> pod_uids() const {
    std::set<std::string> uids;
    for (const std::string& name : pods()) uids.insert(uid_of(server.objects.at("pods/a/" + name)));
    return uids;
  }
  static std::string uid_of(const Json& object) { return base::string_at(base::child(object, "metadata"), "uid"); }

  // What a kubelet writes.
  void set_pod(const std::string& name, const std::string& phase, int exit_code = -1, const std::string& message = "") {
    Json pod = server.objects.at("pods/a/" + name);
    pod["status"] = Json{{"phase", phase}};
    if (exit_code >= 0) {
      Json terminated{{"exitCode", exit_code}, {"message", message}};
      pod["status"]["containerStatuses"] = Json::array(
          {{{"name", contract::kContainerName}, {"state", {{"terminated", std::move(terminated)}}}}});
    }
    server.put("pods", pod);
  }
  void set_all_pods(const std::string& phase, int exit_code = -1, const std::string& message = "") {
    for (const std::string& name : pods()) set_pod(name, phase, exit_code, message);
  }

  // Lines of the server's log that begin so and end with `code`, if one is given.
  int count(const std::string& begin, const std::string& code = "") const {
    int found = 0;
    for (const std::string& line : server.log())
      found += line.starts_with(begin) && line.ends_with(code) ? 1 : 0;
    return found;
  }

  base::FakeClock clock;
  FakeTransport transport;
  FakeApiServer server{transport};
  NoTokens tokens;
  std::unique_ptr<Process> process;
  bool hold_pods = false;     // the watch of pods tells nothing
  bool hold_watches = false;  // no watch does
  std::vector<std::string> loud;  // what was logged as an error

 private:
  static constexpr base::Duration kTick = std::chrono::milliseconds(50);

  void plan(const RunReport& report) {
    due_.reset();
    const bool again = report.result == RunResult::kError || report.result == RunResult::kRequeue;
    failures_ = again ? failures_ + 1 : 0;
    if (again) due_ = clock.now() + std::chrono::milliseconds(5) * (1 << std::min(failures_, 17));
    if (report.result == RunResult::kRequeueAfter) due_ = clock.now() + *report.requeue_after;
  }

  std::optional<base::MonotonicTime> due_;
  int failures_ = 0;
  int kill_at_ = 0;
};

inline std::string texts(const std::vector<contract::FieldError>& errors) {
  std::string all;
  for (const contract::FieldError& error : errors) all += error.text() + "\n";
  return all;
}

}  // namespace evenkeel::oper
