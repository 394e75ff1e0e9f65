// Operator cases that only a real API server or a real process can show.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/files.h"
#include "tests/operator/judged_run.h"
#include "tests/operator/world.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

// The operator is away: nothing of ours may hold up a deletion.
TEST(OperatorCases, OP_30_finalizer_blocks_deletion) {
  ApiServer server("garbage-collector-controller,namespace-controller");
  OperatorProcess op(server);
  op.start();
  for (const bool whole_namespace : {false, true}) {
    JobUnderTest job(server, whole_namespace ? "space" : "alone", 4);
    job.create();
    ASSERT_TRUE(eventually([&] { return job.pods().size() == 5; })) << job.job().dump(1);
    job.run_all();
    op.kill();
    EXPECT_FALSE(job.job()["metadata"].contains("finalizers"));
    for (const Resource* resource : {&pods(), &services(), &config_maps(), &secrets()}) {
      const ApiReply all = server.client().list(
          *resource, {.name_space = job.name_space(), .label_selector = "", .limit = 100, .continue_token = ""});
      ASSERT_TRUE(all.ok()) << all.message;
      EXPECT_FALSE(all.object["items"].empty()) << resource->plural;
      for (const Json& object : all.object["items"])
        EXPECT_FALSE(object["metadata"].contains("finalizers")) << object["metadata"]["name"];
    }
    if (whole_namespace) {
      const Resource namespaces{"/api/v1", "namespaces", "Namespace"};
      const ApiReply space = server.client().get(namespaces, "", job.name_space());
      ASSERT_TRUE(space.ok()) << space.message;
      ASSERT_TRUE(server.client()
                      .remove(namespaces, "", job.name_space(),
                              {base::string_at(space.object["metadata"], "uid"), "", std::nullopt})
                      .ok());
      EXPECT_TRUE(eventually([&] {
        return server.client().get(namespaces, "", job.name_space()).code == ApiCode::kNotFound;
      })) << server.client().get(namespaces, "", job.name_space()).object.dump(1);
    } else {
      job.remove();
      EXPECT_TRUE(job.job().is_null()) << "gone at once; the collector takes its children in its own time";
      op.start();
    }
  }
  EXPECT_EQ(server.run().new_violations(""), "");
}

TEST(OperatorCases, OP_51_settings_that_are_not_understood_end_the_start) {
  std::string pattern = "/tmp/evenkeel-op51-XXXXXX";
  const std::filesystem::path folder = mkdtemp(pattern.data());
  const std::string plugin = folder / "plugin", mark = folder / "it-was-run";
  std::ofstream(plugin) << "#!/bin/sh\ntouch " << mark << "\n";
  chmod(plugin.c_str(), 0755);
  struct Row {
    std::string user, cluster, field;
  };
  for (const Row& row : {Row{"exec: {command: " + plugin + "}", "", "'exec'"},
                         Row{"auth-provider: {name: oidc, config: {cmd-path: " + plugin + "}}", "", "'auth-provider'"},
                         Row{"token: t", "    proxy-url: http://127.0.0.1:1\n", "'proxy-url'"}}) {
    std::ofstream(folder / "kubeconfig")
        << "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- {name: c, context: {cluster: k, user: u}}\n"
        << "clusters:\n- name: k\n  cluster:\n    server: https://127.0.0.1:1\n"
        << row.cluster << "users:\n- name: u\n  user:\n    " << row.user << "\n";
    const std::string log = folder / "log";
    std::filesystem::remove(log);
    base::SubprocessOptions options;
    options.argv = {std::string(EVENKEEL_BIN_DIR) + "/evenkeel-operator", "run", "--kubeconfig",
                    folder / "kubeconfig", "--metrics-address", "127.0.0.1:0"};
    options.stdout_file = options.stderr_file = log;
    auto process = base::Subprocess::start(options);
    ASSERT_TRUE(process.ok()) << process.error().message;
    const auto code = process->wait(base::real_clock().now() + 60s, nullptr);
    ASSERT_TRUE(code.ok()) << "it goes on";
    EXPECT_NE(*code, 0);
    std::ostringstream words;
    words << std::ifstream(log).rdbuf();
    EXPECT_NE(words.str().find(row.field), std::string::npos) << words.str();
    EXPECT_NE(words.str().find(row.cluster.empty() ? "user entry 'u'" : "cluster entry 'k'"), std::string::npos)
        << words.str();
    EXPECT_FALSE(std::filesystem::exists(mark)) << "a plugin was run";
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace evenkeel::oper
