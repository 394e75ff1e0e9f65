#include "operator/act/actor.h"

#include <gtest/gtest.h>

#include "base/clock_fake.h"
#include "operator/act/status_patch.h"
#include "operator/kube/api_server_fake.h"

namespace evenkeel::oper {
namespace {

using Failure = FakeApiServer::Failure;

class NoTokens : public TokenSource {
 public:
  std::string authorization() override { return ""; }
  void rejected() override {}
};

class ActorTest : public ::testing::Test {
 protected:
  ActorTest() {
    Json object =
        server.put("trainingjobs", Json{{"metadata", {{"name", "t"}, {"namespace", "a"}, {"uid", "job-1"}}}});
    refresh(object);
  }
  void refresh(const Json& object) {
    job = {"a", "t", "job-1", base::string_at(object["metadata"], "resourceVersion"),
           base::child(object, "status")};
  }
  // The status as the API server and the cache have it.
  void store_status(const Json& status) {
    Json object = server.objects.at("trainingjobs/a/t");
    object["status"] = status;
    refresh(server.put("trainingjobs", object));
  }
  Json child(const std::string& name, const std::string& owner_uid = "job-1") const {
    return Json{
        {"metadata",
         {{"name", name},
          {"namespace", "a"},
          {"labels", {{"training.evenkeel.dev/job-uid", owner_uid}}},
          {"ownerReferences",
           Json::array(
               {{{"kind", "TrainingJob"}, {"name", "t"}, {"uid", owner_uid}, {"controller", true}}})}}}};
  }
  Request create(const std::string& kind, const std::string& name) const {
    Request request;
    request.kind = kind;
    request.name = name;
    request.body = child(name);
    return request;
  }
  static Request remove(const std::string& name, const std::string& uid) {
    Request request;
    request.verb = Verb::kDelete;
    request.kind = "Pod";
    request.name = name;
    request.uid = uid;
    return request;
  }
  ActReport act(const Decision& decision) { return actor.carry_out(job, decision, memory); }

  base::FakeClock clock;
  FakeTransport transport;
  FakeApiServer server{transport};
  NoTokens tokens;
  ApiClient client{transport, tokens, clock};
  Stores stores;
  Expectations expectations;
  Actor actor{client, stores, expectations, nullptr};
  JobRef job;
  JobMemory memory;
};

TEST_F(ActorTest, writes_the_status_before_the_first_request) {
  Decision decision;
  decision.status = Json{{"attempt", 1}};
  decision.requests = {create("Service", "t"), create("Pod", "t-worker-0-1")};
  EXPECT_EQ(act(decision).code, ActCode::kDone);
  EXPECT_EQ(server.log(), (std::vector<std::string>{"PATCH trainingjobs t 200", "POST services t 201",
                                                    "POST pods t-worker-0-1 201"}));
}

TEST_F(ActorTest, sends_no_request_when_the_status_write_fails) {
  Decision decision;
  decision.status = Json{{"attempt", 1}};
  decision.requests = {create("Pod", "p")};
  server.fail_write(1, Failure::kBefore);
  EXPECT_EQ(act(decision).code, ActCode::kRetry);
  job.resource_version = "1";
  EXPECT_EQ(act(decision).code, ActCode::kConflict);
  EXPECT_TRUE(server.names("pods").empty());
}

TEST_F(ActorTest, writes_nothing_when_nothing_differs) {
  Decision decision;
  decision.status = Json{{"phase", "Running"}, {"workers", {{"ready", 2}}}};
  ASSERT_TRUE(act(decision).status_written);
  refresh(server.objects.at("trainingjobs/a/t"));
  const int writes = server.writes();
  EXPECT_FALSE(act(decision).status_written);
  EXPECT_EQ(server.writes(), writes);
}

TEST_F(ActorTest, a_patch_is_for_one_uid_and_a_pod_that_is_gone_needs_none) {
  server.put("pods", child("t-worker-0-1"));
  Json& pod = server.objects.at("pods/a/t-worker-0-1");
  pod["metadata"]["labels"]["training.evenkeel.dev/current"] = "true";
  Request hide;
  hide.verb = Verb::kPatch;
  hide.kind = "Pod";
  hide.name = "t-worker-0-1";
  hide.body["metadata"]["labels"]["training.evenkeel.dev/current"] = nullptr;
  hide.uid = "another";
  Decision decision;
  decision.requests = {hide, create("Pod", "t-worker-0-2")};
  EXPECT_EQ(act(decision).code, ActCode::kConflict);
  EXPECT_EQ(server.names("pods").size(), 1u);
  decision.requests[0].uid = pod["metadata"]["uid"].get<std::string>();
  EXPECT_EQ(act(decision).code, ActCode::kDone);
  const Json& labels = server.objects.at("pods/a/t-worker-0-1")["metadata"]["labels"];
  EXPECT_FALSE(labels.contains("training.evenkeel.dev/current"));
  EXPECT_TRUE(labels.contains("training.evenkeel.dev/job-uid"));
  decision.requests = {hide};
  decision.requests[0].name = "t-worker-9-1";
  EXPECT_EQ(act(decision).code, ActCode::kDone);
  decision.requests[0].uid = "";
  EXPECT_EQ(act(decision).code, ActCode::kRetry);
}

TEST_F(ActorTest, the_first_failure_ends_the_list) {
  server.intercept = [](const HttpCall& call) -> std::optional<HttpReply> {
    if (call.method == "POST" && call.body.find("\"p1\"") != std::string::npos)
      return answered(403, R"({"reason":"Forbidden","message":"exceeded quota: q"})");
    return std::nullopt;
  };
  Decision decision;
  decision.requests = {create("Pod", "p0"), create("Pod", "p1"), create("Pod", "p2")};
  const ActReport first = act(decision);
  EXPECT_EQ(first.code, ActCode::kWait);
  EXPECT_LT(*first.wait, std::chrono::seconds(1));  // shown at once
  EXPECT_FALSE(act(decision).wait);                 // then paced by the decision
  EXPECT_EQ(server.names("pods"), std::vector<std::string>{"p0"});
  EXPECT_NE(memory.create_errors.at("Pod/p1").find("exceeded quota: q"), std::string::npos);
  server.intercept = nullptr;
  decision.requests = {create("Pod", "p1")};
  EXPECT_EQ(act(decision).code, ActCode::kDone);
  EXPECT_TRUE(memory.create_errors.empty());
}

TEST_F(ActorTest, own_create_seen_as_a_clash_is_success) {
  Decision decision;
  decision.requests = {create("Pod", "p0")};
  server.fail_write(1, Failure::kCommittedNoReply);
  EXPECT_EQ(act(decision).code, ActCode::kRetry);
  EXPECT_EQ(act(decision).code, ActCode::kDone);
  EXPECT_EQ(server.names("pods").size(), 1u);
  EXPECT_TRUE(memory.name_conflicts.empty());
  EXPECT_EQ(expectations.state("job-1", clock.now()), Expectations::State::kWaiting);
}

TEST_F(ActorTest, a_strangers_object_is_a_name_conflict_and_is_left_alone) {
  server.put("pods", child("p0", "job-2"));
  Decision decision;
  decision.requests = {create("Pod", "p0"), create("Pod", "p1")};
  EXPECT_EQ(act(decision).code, ActCode::kWait);
  EXPECT_EQ(memory.name_conflicts.at("Pod/p0"), "TrainingJob t");
  EXPECT_EQ(server.names("pods"), std::vector<std::string>{"p0"});
}

TEST_F(ActorTest, the_secret_gets_a_random_key_and_a_409_means_made_earlier) {
  Decision decision;
  decision.status = Json{{"attempt", 3}};
  Request request = create("Secret", "t-key-12345678");
  request.body["data"] = Json{{"key", ""}};
  decision.requests = {request};
  EXPECT_EQ(act(decision).code, ActCode::kDone);
  const std::string key = server.objects.at("secrets/a/t-key-12345678")["data"]["key"].get<std::string>();
  EXPECT_EQ(key.size(), 44u);  // 32 bytes in base64
  EXPECT_EQ(memory.secret_attempt, 3);
  memory.secret_attempt.reset();
  decision.status.reset();
  store_status(Json{{"attempt", 4}});
  EXPECT_EQ(act(decision).code, ActCode::kDone);
  EXPECT_EQ(memory.secret_attempt, 4);
  EXPECT_EQ(server.objects.at("secrets/a/t-key-12345678")["data"]["key"].get<std::string>(), key);
}

TEST_F(ActorTest, a_secret_that_pods_use_and_that_has_to_be_made_was_lost) {
  Decision decision;
  store_status(Json{{"attempt", 3}});
  Request request = create("Secret", "t-key-12345678");
  request.in_use = true;
  decision.requests = {request, create("Pod", "p1")};
  EXPECT_EQ(act(decision).code, ActCode::kConflict);
  EXPECT_EQ(memory.key_lost_attempt, 3);
  EXPECT_TRUE(server.names("pods").empty()) << "a pod with the new key could not join";
  memory.key_lost_attempt.reset();
  EXPECT_EQ(act(decision).code, ActCode::kDone) << "it is there";
  EXPECT_FALSE(memory.key_lost_attempt);
}

TEST_F(ActorTest, a_delete_carries_the_uid_and_a_pod_is_looked_at_first) {
  const Json pod = server.put("pods", child("p0"));
  stores.pods.put(pod);
  Decision decision;
  decision.requests = {remove("p0", "another")};
  EXPECT_EQ(act(decision).code, ActCode::kDone);  // that one is gone; its namesake stays
  EXPECT_EQ(server.names("pods").size(), 1u);
  decision.requests = {remove("p0", pod["metadata"]["uid"].get<std::string>())};
  EXPECT_EQ(act(decision).code, ActCode::kDone);
  EXPECT_TRUE(server.names("pods").empty());
  EXPECT_EQ(act(decision).code, ActCode::kDone);  // gone already
}

TEST_F(ActorTest, a_pod_that_is_not_the_jobs_is_never_deleted) {
  const Json pod = server.put("pods", child("p0", "job-2"));
  Decision decision;
  decision.requests = {remove("p0", pod["metadata"]["uid"].get<std::string>())};
  EXPECT_EQ(act(decision).code, ActCode::kRetry);
  EXPECT_EQ(server.names("pods").size(), 1u);
}

TEST_F(ActorTest, a_status_that_is_too_large_is_written_shorter_once) {
  int patches = 0;
  server.intercept = [&](const HttpCall& call) -> std::optional<HttpReply> {
    if (call.method != "PATCH") return std::nullopt;
    ++patches;
    if (call.body.size() > 2000) return answered(413, R"({"reason":"RequestEntityTooLarge"})");
    return std::nullopt;
  };
  Decision decision;
  decision.status =
      Json{{"phase", "Failed"},
           {"conditions", Json::array({{{"type", "Failed"}, {"message", std::string(3000, 'x')}}})}};
  EXPECT_TRUE(act(decision).status_written);
  EXPECT_EQ(patches, 2);
  EXPECT_EQ(server.objects.at("trainingjobs/a/t")["status"]["phase"], "Failed");
  decision.status = Json{{"phase", "Failed"}, {"big", Json(std::vector<std::string>(500, "abcdefgh"))}};
  refresh(server.objects.at("trainingjobs/a/t"));
  EXPECT_EQ(act(decision).code, ActCode::kRetry);
  EXPECT_EQ(patches, 4);  // no loop
}

TEST_F(ActorTest, every_lost_answer_is_read_back_and_the_end_state_is_the_same) {
  Decision decision;
  decision.requests = {create("Service", "t"), create("ConfigMap", "t-config-1"), create("Secret", "t-key"),
                       create("Pod", "p0"), create("Pod", "p1")};
  for (const Failure failure : {Failure::kBefore, Failure::kCommittedNoReply}) {
    for (int n = 1; n <= 5; ++n) {
      server.objects.erase("services/a/t");
      server.objects.erase("configmaps/a/t-config-1");
      server.objects.erase("secrets/a/t-key");
      server.objects.erase("pods/a/p0");
      server.objects.erase("pods/a/p1");
      server.fail_write(n, failure);
      EXPECT_EQ(act(decision).code, ActCode::kRetry);
      EXPECT_EQ(act(decision).code, ActCode::kDone) << n;
      EXPECT_EQ(server.names("pods").size(), 2u);
      EXPECT_EQ(server.names("secrets").size(), 1u);
    }
  }
}

TEST(StatusPatch, is_the_smallest_difference_and_applies_back) {
  const Json from{{"a", 1}, {"b", {{"c", 1}, {"d", 2}}}, {"gone", 1}, {"list", {1, 2}}};
  const Json to{{"a", 1}, {"b", {{"c", 1}, {"d", 3}}}, {"list", {1}}, {"new", "x"}, {"none", nullptr}};
  const Json patch = merge_difference(from, to);
  EXPECT_EQ(patch, (Json{{"b", {{"d", 3}}}, {"list", {1}}, {"new", "x"}, {"gone", nullptr}}));
  Json result = from;
  result.merge_patch(patch);
  EXPECT_TRUE(merge_difference(result, to).empty());
  EXPECT_TRUE(merge_difference(to, to).empty());
  EXPECT_EQ(merge_difference(Json(), Json{{"a", 1}}), (Json{{"a", 1}}));
}

TEST(StatusPatch, a_shorter_status_is_valid_utf8_and_keeps_phase_and_counters) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "\xe2\x82\xac";
  Json replicas = Json::array();
  for (int i = 0; i < 64; ++i) replicas.push_back(Json{{"rank", i}});
  const Json result = shorter_status(
      Json{{"phase", "Failed"}, {"restarts", {{"total", 3}}}, {"message", text}, {"replicas", replicas}});
  EXPECT_EQ(result["phase"], "Failed");
  EXPECT_EQ(result["restarts"]["total"], 3);
  EXPECT_EQ(result["replicas"].size(), 8u);
  EXPECT_LE(result["message"].get<std::string>().size(), 128u);
  EXPECT_EQ(result["message"].get<std::string>().size() % 3, 0u);
}

}  // namespace
}  // namespace evenkeel::oper
