// Operator cases: children and objects that are refused, and status writes under pressure. One operator, an API server
// in memory.
#include <gtest/gtest.h>

#include <set>

#include "operator/runtime/cases_world.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

bool makes_pod(const HttpCall& call) {
  return call.method == "POST" && contains(call.target, "/pods?");
}
bool writes_status(const HttpCall& call) {
  return call.method == "PATCH" && contains(call.target, "/trainingjobs/");
}
bool says_failed(const HttpCall& call) {
  return writes_status(call) &&
         base::string_at(base::child(*base::parse_json(call.body), "status"), "phase") == "Failed";
}

TEST(OperatorCases, OP_03_child_refused_nothing_in_the_status) {
  CasesWorld w;
  std::size_t quota = 2;
  std::vector<base::MonotonicTime> tries;
  w.server.intercept = [&](const HttpCall& call) -> MaybeReply {
    if (!makes_pod(call) || w.pods().size() < quota) return std::nullopt;
    tries.push_back(w.clock.now());
    return answered(403, R"({"reason": "Forbidden",
        "message": "exceeded quota: team, requested: pods=1, limited: pods=2"})");
  };
  w.create_job();
  w.run_for(5s);
  EXPECT_EQ(w.state_of("PodsReady"), "False");
  EXPECT_TRUE(contains(w.words_of("PodsReady"), "exceeded quota: team")) << w.words_of("PodsReady");
  EXPECT_TRUE(contains(w.words_of("PodsReady"), "3 of 5 pods are missing")) << w.words_of("PodsReady");
  EXPECT_EQ(w.phase(), "Pending");
  w.run_for(25s);
  EXPECT_LE(tries.size(), 20u);
  ASSERT_GE(tries.size(), 5u);
  const std::size_t last = tries.size() - 1;
  EXPECT_GT(tries[last] - tries[last - 1], tries[3] - tries[2]) << "the gaps grow";
  quota = 8;
  w.run_for(90s);
  EXPECT_EQ(w.pods().size(), 5u);
  EXPECT_EQ(w.count("POST pods", " 201"), 5);
  EXPECT_EQ(w.restarts(), 0);
  EXPECT_TRUE(w.loud.empty()) << w.loud.front();
}

// Refused where it is applied; and if it is in the store, it hurts itself only.
void expect_refused(const Json& object, const std::vector<std::string>& words) {
  const std::string errors = texts(contract::validate_job(object));
  CasesWorld w;
  w.server.put("trainingjobs", object);
  w.run_for(60s);
  for (const std::string& word : words) {
    EXPECT_TRUE(contains(errors, word)) << errors;
    EXPECT_TRUE(contains(w.words_of("Accepted"), word)) << w.status().dump(1);
  }
  EXPECT_EQ(w.state_of("Accepted"), "False");
  EXPECT_EQ(w.phase(), "Failed");
  EXPECT_EQ(w.server.writes(), 1) << "its status, and no child";
  EXPECT_EQ(w.run().result, RunResult::kSuccess) << "nobody comes back for it";
  w.server.put("trainingjobs", CasesWorld::manifest("good"));
  w.sync();
  w.run("a/good");
  EXPECT_EQ(w.pods().size(), 5u) << "the next job has its pods at once";
}

TEST(OperatorCases, OP_04_one_manifest_takes_the_operator_down) {
  Json no_workers = CasesWorld::manifest();
  no_workers["spec"]["workers"] = Json::object();
  expect_refused(no_workers, {"spec.workers.replicas"});
  const Json negative = CasesWorld::manifest("t", {{"cleanup", {{"ttlSecondsAfterFinished", -1}}}});
  expect_refused(negative, {"spec.cleanup.ttlSecondsAfterFinished"});
}

TEST(OperatorCases, OP_05_an_empty_set_makes_a_create_delete_loop) {
  expect_refused(CasesWorld::manifest("t", {{"workers", {{"replicas", 0}}}}),
                 {"spec.workers.replicas", "1", "4096"});
}

TEST(OperatorCases, OP_06_immutable_field_can_be_changed) {
  const Json old_object = CasesWorld::manifest();
  const Json other = CasesWorld::manifest("t", {{"managedBy", "example.org/other"}});
  for (const auto& [from, to] : {std::pair{old_object, other}, std::pair{other, old_object}}) {
    const auto errors = contract::validate_job(to, from);
    ASSERT_EQ(errors.size(), 1u) << texts(errors);
    EXPECT_TRUE(contains(errors[0].text(), "managedBy")) << errors[0].text();
  }
  Json labelled = old_object;
  labelled["metadata"]["labels"]["team"] = "x";
  EXPECT_EQ(texts(contract::validate_job(labelled, old_object)), "");
  CasesWorld w;
  w.server.put("trainingjobs", other);
  w.run_for(60s);
  EXPECT_EQ(w.server.writes(), 0);
}

TEST(OperatorCases, OP_18_clean_up_error_swallowed) {
  CasesWorld w;
  std::vector<base::MonotonicTime> refused;
  int failed_writes = 0;
  w.server.intercept = [&](const HttpCall& call) -> MaybeReply {
    if (says_failed(call)) ++failed_writes;
    if (call.method != "DELETE" || refused.size() == 5) return std::nullopt;
    refused.push_back(w.clock.now());
    return answered(500, "{}");
  };
  w.create_job({{"deadlines", {{"activeSeconds", 20}}}});
  w.run_for(2s);
  w.set_all_pods("Running");
  w.run_for(15s);
  EXPECT_EQ(w.phase(), "Starting");
  const int creates = w.count("POST");
  bool killed = false;
  w.run_for(10s, [&] {
    if (refused.size() != 3 || killed) return;
    killed = true;
    w.restart();
  });
  EXPECT_TRUE(killed);
  ASSERT_EQ(refused.size(), 5u);
  for (std::size_t i = 1; i < refused.size(); ++i) EXPECT_GT(refused[i], refused[i - 1]) << "it waits in between";
  EXPECT_EQ(failed_writes, 1);
  EXPECT_EQ(base::string_at(w.condition("Failed"), "reason"), "DeadlineExceeded");
  EXPECT_TRUE(contains(w.words_of("Failed"), "deadlines.activeSeconds is 20")) << w.words_of("Failed");
  EXPECT_TRUE(w.pods().empty());
  EXPECT_EQ(w.count("POST"), creates);
}

std::string hostile_words() {
  std::string text;
  while (text.size() + 5 <= 4096) text += "\x01\"\xe2\x82\xac";
  return text;
}

void expect_small_texts(const Json& value) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    EXPECT_LE(text.size(), 1024u) << text;
    EXPECT_FALSE(contains(text, "\xef\xbf\xbd")) << "a character was cut: " << text;
  }
  if (value.is_structured()) {
    for (const Json& item : value) expect_small_texts(item);
  }
}

// All 64 workers end at once with long messages.
void end_badly(CasesWorld& w) {
  w.create_job({{"workers", {{"replicas", 64}}}});
  w.run_for(5s);
  ASSERT_EQ(w.pods().size(), 65u);
  Json object = w.job();
  object["status"]["progress"] = {{"step", 40}, {"samples", 10240}};  // as reported before
  w.server.put("trainingjobs", object);
  for (int rank = 0; rank < 64; ++rank)
    w.set_pod("t-worker-" + std::to_string(rank) + "-1", "Failed", 65, hostile_words());
  w.run_for(5s);
}

TEST(OperatorCases, OP_32_status_grows_too_large) {
  CasesWorld w;
  end_badly(w);
  EXPECT_EQ(w.phase(), "Failed");
  EXPECT_LE(w.job().dump().size(), 256u << 10);
  expect_small_texts(w.status());
  std::set<std::string> types;
  const Json status = w.status();
  for (const Json& condition : status["conditions"])
    EXPECT_TRUE(types.insert(base::string_at(condition, "type")).second) << condition;

  CasesWorld refusing;
  std::vector<std::size_t> sizes;
  refusing.server.intercept = [&](const HttpCall& call) -> MaybeReply {
    if (!says_failed(call)) return std::nullopt;
    sizes.push_back(call.body.size());
    if (sizes.size() == 1) return answered(413, R"({"reason": "RequestEntityTooLarge"})");
    return std::nullopt;
  };
  end_badly(refusing);
  refusing.run_for(60s);
  ASSERT_EQ(sizes.size(), 2u) << "one shorter status, no loop";
  EXPECT_LT(sizes[1], sizes[0]);
  EXPECT_EQ(refusing.phase(), "Failed");
  EXPECT_EQ(refusing.status()["progress"]["step"], 40);
  EXPECT_EQ(refusing.status()["lastFailure"]["exitCode"], 65);
}

TEST(OperatorCases, OP_33_the_same_line_again_and_again) {
  CasesWorld w;
  int notes = 0, patches = 0, ticks = 0, conflicts = 0;
  const auto annotate = [&] {
    Json object = w.job();
    object["metadata"]["annotations"]["note"] = std::to_string(++notes);
    w.server.put("trainingjobs", object);
  };
  w.server.intercept = [&](const HttpCall& call) -> MaybeReply {
    if (!writes_status(call) || ++patches % 2 == 0) return std::nullopt;
    annotate();  // in between: this write is refused
    ++conflicts;
    return std::nullopt;
  };
  const auto tick = [&] {
    if (++ticks % 2 == 0) annotate();  // every 100 ms
  };
  w.create_job();
  w.run_for(20s, tick);
  EXPECT_EQ(w.pods().size(), 5u);
  w.set_all_pods("Running");
  w.run_for(40s, tick);
  EXPECT_EQ(w.phase(), "Starting");
  EXPECT_EQ(w.state_of("PodsReady"), "True");
  EXPECT_GE(conflicts, 2);
  EXPECT_TRUE(w.loud.empty()) << "logged as an error: " << w.loud.front();
  EXPECT_LE(w.count("PATCH trainingjobs", " 200"), 60 / 5 + 3);
  EXPECT_EQ(w.count("POST pods", " 201"), 5);
  EXPECT_EQ(w.count("DELETE"), 0);
}

}  // namespace
}  // namespace evenkeel::oper
