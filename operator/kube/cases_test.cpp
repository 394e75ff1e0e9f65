// Operator cases about the client: what a stream may hold, tokens that rotate, settings that are not understood.
#include <gtest/gtest.h>

#include "base/clock_fake.h"
#include "base/files_fake.h"
#include "operator/kube/list_watch.h"
#include "operator/kube/transport_fake.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

class NoTokens : public TokenSource {
 public:
  std::string authorization() override { return ""; }
  void rejected() override {}
};

Json pod(const std::string& name) {
  return {{"metadata",
           {{"name", name},
            {"namespace", "a"},
            {"uid", "uid-" + name},
            {"resourceVersion", "5"},
            {"labels", {{"training.evenkeel.dev/job-uid", "job-1"}}}}}};
}

std::string page(const std::vector<Json>& items, const std::string& version) {
  return base::dump_json(Json{{"metadata", {{"resourceVersion", version}}}, {"items", items}});
}

TEST(OperatorCases, OP_45_410_in_a_stream_of_200) {
  base::FakeClock clock;
  FakeTransport transport;
  NoTokens tokens;
  ApiClient client(transport, tokens, clock);
  ObjectStore store(ObjectStore::Owner::kByLabel);
  std::vector<StoreChange> changes;
  store.set_handler([&](const StoreChange& change) { changes.push_back(change); });
  ListWatch watch(client, {pods(), "", ""}, store, nullptr, 1);
  int lists = 0;
  transport.on_send = [&](const HttpCall&) {
    return answered(200, ++lists == 1 ? page({pod("p0"), pod("p1")}, "10") : page({pod("p1")}, "20"));
  };
  transport.on_watch = [&](const HttpCall&) {
    const std::string line = R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})";
    return std::make_shared<FakeStream>(answered(200, ""), std::vector<std::string>{line + "\n"},
                                        base::ErrorCode::kAborted);
  };
  watch.step();
  changes.clear();
  const base::Duration wait = watch.step();
  EXPECT_GE(wait, 800ms) << "no tight loop";
  EXPECT_TRUE(changes.empty()) << "a Status was taken for a pod: " << changes.front().name;
  clock.advance(wait);
  EXPECT_TRUE(watch.needs_list());
  watch.step();
  EXPECT_EQ(lists, 2);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].type, ChangeType::kDeleted);
  EXPECT_EQ(changes[0].name, "p0") << "deleted in the gap";
  EXPECT_EQ(watch.version(), "20");
}

TEST(OperatorCases, OP_46_token_rotation) {
  base::FakeClock clock;
  base::FakeFiles files;
  AccessConfig config;
  config.token.path = "/t/token";
  files.put("/t/token", "secret-0");
  Credentials credentials(config, files, clock);
  CredentialTokens tokens(credentials);
  FakeTransport transport;
  ApiClient client(transport, tokens, clock);
  std::string good = "Bearer secret-0";  // the only one that is not revoked
  int rejected = 0, calls = 0;
  transport.on_send = [&](const HttpCall& call) {
    ++calls;
    if (call.authorization == good) return answered(200, "{}");
    ++rejected;
    return answered(401, "{}");
  };
  ::testing::internal::CaptureStderr();
  int asked = 0;
  for (int rotation = 0; rotation <= 10; ++rotation) {
    if (rotation > 0) {
      good = "Bearer secret-" + std::to_string(rotation);
      files.put("/t/token", "secret-" + std::to_string(rotation) + "\n");
    }
    const int before = rejected;
    for (int second = 0; second < 60; second += 5) {
      EXPECT_TRUE(client.get(pods(), "a", "p").ok()) << "no reconcile fails";
      EXPECT_TRUE(client.create(pods(), "a", Json::object()).ok());
      asked += 2;
      clock.advance(5s);
    }
    EXPECT_LE(rejected - before, 1) << "rotation " << rotation;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr().find("secret-"), std::string::npos);
  EXPECT_EQ(calls, asked + rejected) << "each 401 is followed by one success";
  EXPECT_GE(rejected, 5) << "most rotations fall between two readings of the file";
}

TEST(OperatorCases, OP_51_settings_that_are_not_understood) {
  const auto error_of = [](const std::string& user, const std::string& cluster) {
    const auto config = parse_kubeconfig(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- {name: c, context: {cluster: k, user: u}}\n"
        "clusters:\n- name: k\n  cluster:\n    server: https://10.0.0.1:6443\n" + cluster +
            "users:\n- name: u\n  user:\n    " + user + "\n",
        "/d");
    return config.ok() ? "" : config.error().message;
  };
  struct Row {
    std::string user, cluster, field, entry;
  };
  for (const Row& row : {Row{"exec: {command: /bin/false}", "", "'exec'", "user entry 'u'"},
                         Row{"auth-provider: {name: oidc}", "", "'auth-provider'", "user entry 'u'"},
                         Row{"token: t", "    proxy-url: http://p\n", "'proxy-url'", "cluster entry 'k'"}}) {
    const std::string error = error_of(row.user, row.cluster);
    EXPECT_NE(error.find(row.field), std::string::npos) << error;
    EXPECT_NE(error.find(row.entry), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace evenkeel::oper
