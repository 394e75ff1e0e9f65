// A real API server, the real operator, and a node that does what the test says. Used by operator_test.cpp.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/http.h"
#include "base/subprocess.h"
#include "contract/report.h"
#include "operator/kube/client.h"
#include "operator/kube/credentials.h"
#include "operator/kube/transport.h"
#include "tests/operator/judged_run.h"

namespace evenkeel::oper {

// Polls until it holds; false at the deadline.
bool eventually(const std::function<bool()>& holds, std::chrono::seconds limit = std::chrono::seconds(60));

// etcd and kube-apiserver for the whole test program; ended with it.
class ApiServer {
 public:
  // With these controllers of kube-controller-manager.
  explicit ApiServer(const std::string& controllers = "garbage-collector-controller");
  ~ApiServer();
  ApiClient& client() { return *client_; }
  const std::string& kubeconfig() const { return kubeconfig_; }
  const std::filesystem::path& folder() const { return folder_; }
  JudgedRun& run() { return *run_; }

 private:
  void install_crd();
  std::filesystem::path folder_;
  std::string kubeconfig_;
  std::unique_ptr<Credentials> credentials_;
  std::unique_ptr<CredentialTokens> tokens_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<ApiClient> client_;
  std::unique_ptr<JudgedRun> run_;
};

// `evenkeel-operator run` as a process.
class OperatorProcess {
 public:
  OperatorProcess(ApiServer& server, std::string kubeconfig = "");
  void start();
  void kill();      // SIGKILL
  int terminate();  // SIGTERM; the exit code
  bool running();
  int pid() const { return process_ ? process_->pid() : -1; }
  std::string page(const std::string& path);  // "" if there is none
  std::string log() const;

 private:
  ApiServer& server_;
  std::string kubeconfig_;
  std::string log_file_;
  std::uint16_t port_ = 0;
  std::unique_ptr<base::Subprocess> process_;
};

// One job in a namespace of its own, its hollow pods, and the report of its coordinator.
class JobUnderTest {
 public:
  JobUnderTest(ApiServer& server, const std::string& name, int workers);
  ~JobUnderTest();
  void create(const Json& spec_patch = Json::object());
  void patch_spec(const Json& patch);
  void remove();

  Json job();  // as the API server has it; null when gone
  std::string phase();
  std::int64_t attempt();
  std::string condition(const std::string& type);  // "True", "False", ""
  std::vector<Json> pods();                        // by name
  std::vector<std::string> pod_names();
  std::vector<std::string> names(const Resource& resource);

  // What kubelet would write.
  void run_pod(const Json& pod);
  void run_all();
  // A caller that dies in the middle of a DELETE may leave a pod that is only marked; a kubelet would end it.
  void finish_terminating();
  void end_pod(const Json& pod, int exit_code, const std::string& message = "");
  // What the coordinator says from now on: it is the newest one of the current attempt, and the newest worker
  // pods are its members.
  void report(contract::JobStage stage, std::int64_t step = 0);
  contract::JobReport make_report(contract::JobStage stage, std::int64_t step);

  const std::string& name_space() const { return name_space_; }

 private:
  ApiServer& server_;
  const std::string name_;
  const std::string name_space_;
  const int workers_;
  std::mutex mutex_;
  std::string report_;
  std::unique_ptr<base::HttpServer> coordinator_;
};

}  // namespace evenkeel::oper
