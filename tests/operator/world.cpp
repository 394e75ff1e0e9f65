#include "tests/operator/world.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "contract/job/names.h"
#include "contract/labels.h"
#include "operator/crd/crd.h"
#include "operator/kube/transport_cpprest.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

base::MonotonicTime in(base::Duration time) {
  return base::real_clock().now() + time;
}
std::string meta(const Json& object, std::string_view key) {
  return base::string_at(base::child(object, "metadata"), key);
}
const Resource kNamespaces{"/api/v1", "namespaces", "Namespace"};
const Resource kCrds{"/apis/apiextensions.k8s.io/v1", "customresourcedefinitions",
                     "CustomResourceDefinition"};

std::string tool() {
  return std::string(EVENKEEL_SOURCE_DIR) + "/tools/cluster/apiserver-only";
}

int run_tool(const std::vector<std::string>& arguments, const std::string& log) {
  base::SubprocessOptions options;
  options.argv = {tool()};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.stdout_file = options.stderr_file = log;
  auto process = base::Subprocess::start(options);
  if (!process.ok()) return -1;
  const auto code = process->wait(in(300s), nullptr);
  return code.ok() ? *code : -1;
}

std::string slurp(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

bool eventually(const std::function<bool()>& holds, std::chrono::seconds limit) {
  const base::MonotonicTime deadline = in(limit);
  while (!holds()) {
    if (base::real_clock().now() > deadline) return false;
    std::this_thread::sleep_for(50ms);
  }
  return true;
}

ApiServer::ApiServer(const std::string& controllers) {
  std::string pattern = "/tmp/evenkeel-op-XXXXXX";
  folder_ = mkdtemp(pattern.data());
  kubeconfig_ = folder_ / "kubeconfig";
  const int code = run_tool({"start", folder_, "--owner", std::to_string(getpid()), "--controllers",
                             controllers},
                            folder_ / "start.log");
  if (code != 0) {
    std::fprintf(stderr, "no API server (%d):\n%s\n", code, slurp(folder_ / "start.log").c_str());
    std::abort();
  }
  auto access = load_kubeconfig(base::real_files(), kubeconfig_);
  if (!access.ok()) {
    std::fprintf(stderr, "%s\n", access.error().message.c_str());
    std::abort();
  }
  credentials_ = std::make_unique<Credentials>(std::move(*access), base::real_files(), base::real_clock());
  tokens_ = std::make_unique<CredentialTokens>(*credentials_);
  transport_ = make_cpprest_transport(*credentials_);
  client_ = std::make_unique<ApiClient>(*transport_, *tokens_, base::real_clock());
  install_crd();
  run_ = std::make_unique<JudgedRun>(*client_, folder_);
}

ApiServer::~ApiServer() {
  run_->stop();
  run_tool({"stop", folder_}, folder_ / "stop.log");
  if (::testing::UnitTest::GetInstance()->Passed())
    std::filesystem::remove_all(folder_);
  else
    std::printf("logs are kept in %s\n", folder_.c_str());
}

void ApiServer::install_crd() {
  const ApiReply made = client_->create(kCrds, "", make_crd());
  if (!made.ok()) {
    std::fprintf(stderr, "CRD: %s\n", made.message.c_str());
    std::abort();
  }
  eventually([&] {
    return client_
        ->list(trainingjobs(), {.name_space = "", .label_selector = "", .limit = 1, .continue_token = ""})
        .ok();
  });
}

OperatorProcess::OperatorProcess(ApiServer& server, std::string kubeconfig)
    : server_(server), kubeconfig_(kubeconfig.empty() ? server.kubeconfig() : std::move(kubeconfig)) {
  log_file_ =
      server.folder() /
      ("operator-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + ".log");
}

void OperatorProcess::start() {
  base::SubprocessOptions options;
  options.argv = {std::string(EVENKEEL_BIN_DIR) + "/evenkeel-operator",
                  "run",
                  "--kubeconfig",
                  kubeconfig_,
                  "--metrics-address",
                  "127.0.0.1:0",
                  "--trainer-image",
                  "trainer:test",
                  "--log-level",
                  "debug"};
  options.stderr_file = options.stdout_file = log_file_;
  const std::size_t begin = log().size();
  auto process = base::Subprocess::start(options);
  ASSERT_TRUE(process.ok()) << process.error().message;
  process_ = std::make_unique<base::Subprocess>(std::move(*process));
  server_.run().add_operator(pid());
  // The port that it says it listens on.
  port_ = 0;
  eventually([&] {
    std::istringstream lines(log().substr(begin));
    for (std::string line; std::getline(lines, line);) {
      const auto json = base::parse_json(line);
      if (json.ok() && base::string_at(*json, "message") == "pages")
        port_ = static_cast<std::uint16_t>(base::int_at(*json, "port"));
    }
    return port_ != 0 || !running();
  });
}

void OperatorProcess::kill() {
  process_->signal(SIGKILL);
  ASSERT_TRUE(process_->wait(in(10s), nullptr).ok());
}

int OperatorProcess::terminate() {
  process_->signal(SIGTERM);
  const auto code = process_->wait(in(15s), nullptr);
  return code.ok() ? *code : -1;
}

bool OperatorProcess::running() {
  return process_ && !process_->exit_code();
}

std::string OperatorProcess::page(const std::string& path) {
  const auto reply = base::http_get("127.0.0.1", port_, path, 5s, 16u << 20);
  return reply.ok() && reply->status == 200 ? reply->body : "";
}

std::string OperatorProcess::log() const {
  return slurp(log_file_);
}

contract::JobReport JobUnderTest::make_report(contract::JobStage stage, std::int64_t step) {
  const Json object = job();
  contract::JobReport report;
  report.job_uid = meta(object, "uid");
  report.attempt = static_cast<std::uint32_t>(base::int_at(base::child(object, "status"), "attempt"));
  report.stage = stage;
  std::map<int, contract::PodIdentity> newest;
  for (const Json& pod : pods()) {
    const auto identity = contract::parse_pod_name(name_, meta(pod, "name"));
    if (!identity || !meta(pod, "deletionTimestamp").empty()) continue;
    if (identity->role == contract::Role::kCoordinator) {
      report.coordinator_incarnation =
          std::max(report.coordinator_incarnation, static_cast<std::uint32_t>(identity->incarnation));
    } else if (newest[identity->rank].incarnation <= identity->incarnation) {
      newest[identity->rank] = *identity;
    }
  }
  report.ranks = static_cast<int>(base::int_at(base::at_path(object, {"spec", "workers"}), "replicas"));
  for (const auto& [rank, identity] : newest) {
    if (rank >= report.ranks) continue;
    contract::ReplicaReport replica;
    replica.rank = rank;
    replica.pod = name_ + "-" + contract::identity_text(identity);
    replica.state = "stepping";
    report.replicas.push_back(replica);
  }
  report.joined = static_cast<int>(report.replicas.size());
  report.progress.step = step;
  report.progress.target_steps = 100;
  report.progress.samples = step * 64;
  report.progress.loss = 0.5;
  return report;
}

JobUnderTest::JobUnderTest(ApiServer& server, const std::string& name, int workers)
    : server_(server), name_(name), name_space_("ns-" + name), workers_(workers) {
  server_.client().create(
      kNamespaces, "",
      Json{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name_space_}}}});
  auto made = base::HttpServer::start(
      {}, {{contract::kReportPath, [this](const base::HttpRequest&) {
              const std::lock_guard lock(mutex_);
              return base::HttpResponse{report_.empty() ? 503 : 200, "application/json", report_};
            }}});
  coordinator_ = std::move(*made);
}

JobUnderTest::~JobUnderTest() = default;

void JobUnderTest::create(const Json& spec_patch) {
  Json object{
      {"apiVersion", contract::kApiVersion},
      {"kind", contract::kKind},
      {"metadata", {{"name", name_}, {"namespace", name_space_}}},
      {"spec",
       {{"workers",
         {{"replicas", workers_}, {"resources", {{"limits", {{"cpu", "400m"}, {"memory", "512Mi"}}}}}}},
        {"model", {{"preset", "mlp"}}},
        {"dataset", {{"format", "idx"}, {"path", "/data"}}},
        {"training", {{"epochs", 1}, {"batchSize", {{"perReplica", 64}}}}},
        {"metrics", {{"port", coordinator_->port()}}}}}};
  object["spec"].merge_patch(spec_patch);
  const ApiReply reply = server_.client().create(trainingjobs(), name_space_, object);
  ASSERT_TRUE(reply.ok()) << reply.message;
}

void JobUnderTest::patch_spec(const Json& patch) {
  const ApiReply reply =
      server_.client().merge_patch(trainingjobs(), name_space_, name_, Json{{"spec", patch}});
  ASSERT_TRUE(reply.ok()) << reply.message;
}

void JobUnderTest::remove() {
  const ApiReply reply =
      server_.client().remove(trainingjobs(), name_space_, name_, {meta(job(), "uid"), "", std::nullopt});
  ASSERT_TRUE(reply.ok()) << reply.message;
}

Json JobUnderTest::job() {
  ApiReply reply = server_.client().get(trainingjobs(), name_space_, name_);
  return reply.ok() ? std::move(reply.object) : Json();
}

std::string JobUnderTest::phase() {
  return base::string_at(base::child(job(), "status"), "phase");
}
std::int64_t JobUnderTest::attempt() {
  return base::int_at(base::child(job(), "status"), "attempt");
}

std::string JobUnderTest::condition(const std::string& type) {
  const Json object = job();
  for (const Json& one : base::at_path(object, {"status", "conditions"}))
    if (base::string_at(one, "type") == type) return base::string_at(one, "status");
  return "";
}

std::vector<Json> JobUnderTest::pods() {
  ApiReply reply = server_.client().list(oper::pods(), {.name_space = name_space_,
                                                        .label_selector = contract::kLabelJobUid,
                                                        .limit = 500,
                                                        .continue_token = ""});
  std::vector<Json> all;
  if (reply.ok()) {
    for (Json& pod : reply.object["items"]) all.push_back(std::move(pod));
  }
  return all;
}

std::vector<std::string> JobUnderTest::pod_names() {
  return names(oper::pods());
}

std::vector<std::string> JobUnderTest::names(const Resource& resource) {
  ApiReply reply = server_.client().list(resource, {.name_space = name_space_,
                                                    .label_selector = contract::kLabelJobUid,
                                                    .limit = 500,
                                                    .continue_token = ""});
  std::vector<std::string> all;
  if (reply.ok())
    for (const Json& object : reply.object["items"]) all.push_back(meta(object, "name"));
  return all;
}

void JobUnderTest::run_pod(const Json& pod) {
  const Json status{{"phase", "Running"},
                    {"podIP", "127.0.0.1"},
                    {"podIPs", Json::array({{{"ip", "127.0.0.1"}}})},
                    {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})},
                    {"containerStatuses",
                     Json::array({{{"name", contract::kContainerName},
                                   {"image", "x"},
                                   {"imageID", ""},
                                   {"ready", true},
                                   {"restartCount", 0},
                                   {"state", {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}}}}})}};
  const ApiReply reply = server_.client().merge_patch_status(oper::pods(), name_space_, meta(pod, "name"),
                                                             Json{{"status", status}});
  EXPECT_TRUE(reply.ok() || reply.code == ApiCode::kNotFound) << reply.message;
}

void JobUnderTest::run_all() {
  for (const Json& pod : pods())
    if (base::string_at(base::child(pod, "status"), "phase") == "Pending") run_pod(pod);
}

void JobUnderTest::finish_terminating() {
  for (const Json& pod : pods())
    if (!meta(pod, "deletionTimestamp").empty())
      server_.client().remove(oper::pods(), name_space_, meta(pod, "name"), {meta(pod, "uid"), "", 0});
}

void JobUnderTest::end_pod(const Json& pod, int exit_code, const std::string& message) {
  const Json status{
      {"phase", exit_code == 0 ? "Succeeded" : "Failed"},
      {"conditions", Json::array({{{"type", "Ready"}, {"status", "False"}}})},
      {"containerStatuses", Json::array({{{"name", contract::kContainerName},
                                          {"image", "x"},
                                          {"imageID", ""},
                                          {"ready", false},
                                          {"restartCount", 0},
                                          {"state",
                                           {{"running", nullptr},
                                            {"terminated",
                                             {{"exitCode", exit_code},
                                              {"reason", exit_code == 0 ? "Completed" : "Error"},
                                              {"message", message},
                                              {"startedAt", "2026-01-01T00:00:00Z"},
                                              {"finishedAt", "2026-01-01T00:01:00Z"}}}}}}})}};
  const ApiReply reply = server_.client().merge_patch_status(oper::pods(), name_space_, meta(pod, "name"),
                                                             Json{{"status", status}});
  EXPECT_TRUE(reply.ok()) << reply.message;
}

void JobUnderTest::report(contract::JobStage stage, std::int64_t step) {
  const auto report = make_report(stage, step);
  const std::lock_guard lock(mutex_);
  report_ = base::dump_json(contract::to_json(report));
}

}  // namespace evenkeel::oper
