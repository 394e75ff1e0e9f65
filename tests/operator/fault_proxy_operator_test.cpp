// The operator behind a proxy that loses replies, and with a node that ends pods by script: a real API server and the
// real binary.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/files.h"
#include "contract/labels.h"
#include "tests/operator/server_fixture.h"
#include "tests/support/fault_proxy/proxy.h"
#include "tests/support/hollow_node/node.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;
using contract::JobStage;

std::string name_of(const Json& object) {
  return base::string_at(base::child(object, "metadata"), "name");
}
std::string uid_of(const Json& object) {
  return base::string_at(base::child(object, "metadata"), "uid");
}

class ScriptedTest : public ServerFixture {
 protected:
  void TearDown() override { EXPECT_EQ(server().run().new_violations(""), ""); }

  static AccessConfig access() { return *load_kubeconfig(base::real_files(), server().kubeconfig()); }

  // All pods where the coordinator's report is expected: at this machine.
  static std::unique_ptr<support::HollowNode> start_node(const JobUnderTest& job, const std::string& rules = "") {
    auto node = support::HollowNode::start(access(), {script_of(rules), job.name_space(), 4});
    EXPECT_TRUE(node.ok());
    return std::move(*node);
  }
  static support::HollowScript script_of(const std::string& rules) {
    auto script = support::parse_script(*base::parse_json(R"({"podIP": "127.0.0.1", "rules": [)" + rules + "]}"));
    EXPECT_TRUE(script.ok()) << (script.ok() ? "" : script.error().message);
    return *script;
  }
  // What a coordinator would report once it sees the workers of now.
  static bool runs(JobUnderTest& job, int workers) {
    if (job.pods().size() < workers + 1u) return false;
    job.report(JobStage::kRunning, ++step_);
    return job.phase() == "Running";
  }
  static std::int64_t restarts(JobUnderTest& job) {
    return base::int_at(base::at_path(job.job(), {"status", "restarts"}), "total");
  }

 private:
  static std::int64_t step_;
};
std::int64_t ScriptedTest::step_ = 0;

TEST_F(ScriptedTest, with_every_reply_to_a_pod_create_lost_each_pod_exists_once) {
  constexpr int kWorkers = 4;
  auto plan = support::parse_plan(
      *base::parse_json(R"({"rules": [{"verb": "create", "kind": "pods", "action": "reset", "when": "after"}]})"));
  ASSERT_TRUE(plan.ok());
  const std::string log_file = server().folder() / "proxy.jsonl";
  auto proxy = support::FaultProxy::start(access(), {0, *plan, log_file});
  ASSERT_TRUE(proxy.ok()) << proxy.error().message;
  const std::string kubeconfig = server().folder() / "kubeconfig-proxy";
  std::ofstream(kubeconfig) << support::proxy_kubeconfig((*proxy)->port());

  OperatorProcess op(server(), kubeconfig);
  JobUnderTest job(server(), "lost", kWorkers);
  auto node = start_node(job);
  op.start();
  job.create();
  ASSERT_TRUE(eventually([&] { return runs(job, kWorkers); }, 25s)) << job.job().dump(1) << op.log();

  std::map<std::string, int> committed;  // by name
  int lost = 0;
  for (const support::ProxyEntry& entry : (*proxy)->entries()) {
    if (entry.request.verb != "create" || entry.request.kind != "pods") continue;
    EXPECT_EQ(entry.delivered, "cut");
    ++lost;
    if (entry.status == 201) ++committed[entry.request.name];
  }
  EXPECT_GE(lost, kWorkers + 1);
  const std::vector<Json> pods = job.pods();
  EXPECT_EQ(pods.size(), kWorkers + 1u);
  EXPECT_EQ(committed.size(), pods.size());
  for (const Json& pod : pods) EXPECT_EQ(committed[name_of(pod)], 1) << name_of(pod);
  EXPECT_EQ(job.attempt(), 1);
  EXPECT_EQ(restarts(job), 0);
  std::ifstream lines(log_file);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_TRUE(base::parse_json(line).ok()) << line;
  EXPECT_EQ(op.terminate(), 0);
}

TEST_F(ScriptedTest, of_fifty_workers_one_ends_with_70_and_is_replaced_alone) {
  constexpr int kWorkers = 50;
  OperatorProcess op(server());
  JobUnderTest job(server(), "fifty", kWorkers);
  auto node = start_node(job);
  op.start();
  job.create();
  ASSERT_TRUE(eventually([&] { return runs(job, kWorkers); }, 25s)) << job.job().dump(1) << op.log();
  EXPECT_EQ(job.pods().size(), kWorkers + 1u);
  std::set<std::string> kept;
  for (const Json& pod : job.pods())
    if (name_of(pod) != "fifty-worker-7-1") kept.insert(uid_of(pod));

  node->set_script(script_of(R"({"role": "worker", "rank": 7, "once": true, "do": "exit", "exitCode": 70})"));
  ASSERT_TRUE(eventually(
      [&] {
        for (const Json& pod : job.pods())
          if (name_of(pod) == "fifty-worker-7-2") return runs(job, kWorkers) && restarts(job) == 1;
        return false;
      },
      25s))
      << job.job().dump(1) << op.log();
  for (const Json& pod : job.pods()) kept.erase(uid_of(pod));
  EXPECT_TRUE(kept.empty()) << "pods that were not harmed are gone";
  EXPECT_EQ(job.attempt(), 1);
  EXPECT_EQ(op.terminate(), 0);
}

}  // namespace
}  // namespace evenkeel::oper
