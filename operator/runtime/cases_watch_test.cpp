// Operator cases: watches that end, with the counters that show it.
#include <gtest/gtest.h>

#include "base/metrics.h"
#include "operator/kube/list_watch.h"
#include "operator/runtime/operator_metrics.h"
#include "operator/runtime/process_fake.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

Json pod(const std::string& phase, int version) {
  return {{"kind", "Pod"},
          {"metadata",
           {{"name", "p"},
            {"namespace", "a"},
            {"uid", "u"},
            {"resourceVersion", std::to_string(version)},
            {"labels", {{"training.evenkeel.dev/job-uid", "job-1"}}}}},
          {"status", {{"phase", phase}}}};
}

std::string event(const std::string& type, const Json& object) {
  return base::dump_json(Json{{"type", type}, {"object", object}}) + "\n";
}

double value_of(const std::string& page, const std::string& series) {
  const std::size_t at = page.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(page.substr(at + series.size() + 2));
}

TEST(OperatorCases, OP_44_watch_dies_silently) {
  base::FakeClock clock;
  FakeTransport transport;
  NoTokens tokens;
  OperatorMetrics metrics(clock, "h:443", 1);
  ApiClient client(transport, tokens, clock, {}, &metrics);
  ObjectStore store(ObjectStore::Owner::kByLabel);
  ListWatch watch(client, {pods(), "", ""}, store, &metrics, 1);
  transport.on_send = [](const HttpCall&) {
    const Json list{{"metadata", {{"resourceVersion", "10"}}}, {"items", Json::array({pod("Running", 9)})}};
    return answered(200, base::dump_json(list));
  };
  int watches = 0;
  std::vector<base::MonotonicTime> asked;
  transport.on_watch = [&](const HttpCall&) -> std::shared_ptr<Stream> {
    asked.push_back(clock.now());
    const int n = watches++;
    if (n >= 1 && n <= 5)
      return std::make_shared<FakeStream>(answered(429, "", {{"retry-after", "1"}}), std::vector<std::string>{},
                                          base::ErrorCode::kAborted);
    const std::string line = n == 0 ? event("BOOKMARK", pod("Running", 11)) : event("MODIFIED", pod("Failed", 12));
    return std::make_shared<FakeStream>(answered(200, ""), std::vector<std::string>{line}, base::ErrorCode::kAborted);
  };
  const std::string restarts = R"(evenkeel_operator_watch_restarts_total{reason="error",resource="pods"})";
  const std::string alive = R"(evenkeel_operator_watch_last_event_timestamp_seconds{resource="pods"})";
  const auto page = [&] { return base::serialize_metrics(metrics.Collect()); };
  watch.step();  // the list
  watch.step();  // the watch that ends
  const double before = value_of(page(), alive);
  for (int refused = 0; refused < 5; ++refused) {
    const base::Duration wait = watch.step();
    EXPECT_EQ(wait, 1s) << "as told";
    EXPECT_EQ(value_of(page(), alive), before) << "the gap shows";
    clock.advance(wait);
  }
  EXPECT_EQ(value_of(page(), restarts), 5);
  watch.step();
  ASSERT_EQ(watches, 7);
  for (std::size_t i = 2; i < asked.size(); ++i) EXPECT_GE(asked[i] - asked[i - 1], 1s) << "one request a slot";
  EXPECT_EQ(base::child(*store.get("u"), "status")["phase"], "Failed") << "the failure is seen";
  EXPECT_GE(value_of(page(), alive), before + 5);
}

}  // namespace
}  // namespace evenkeel::oper
