#include "operator/kube/client.h"

#include <gtest/gtest.h>

#include "base/clock_fake.h"
#include "operator/kube/transport_fake.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

class CountingTokens : public TokenSource {
 public:
  std::string authorization() override { return "Bearer " + std::to_string(rejections); }
  void rejected() override { ++rejections; }
  int rejections = 0;
};

class ClientTest : public ::testing::Test {
 protected:
  // The next answers, in order; the last one stays.
  void will_answer(std::vector<HttpReply> replies) {
    transport.on_send = [this, replies](const HttpCall&) {
      return replies[std::min(next++, replies.size() - 1)];
    };
  }
  base::FakeClock clock;
  FakeTransport transport;
  CountingTokens tokens;
  ApiClient client{transport, tokens, clock};
  std::size_t next = 0;
  const Json body{{"kind", "Pod"}};
};

TEST_F(ClientTest, gives_each_answer_its_meaning) {
  struct Row {
    int status;
    std::string body;
    ApiCode for_read, for_write;
  };
  const std::vector<Row> rows{
      {200, "{}", ApiCode::kOk, ApiCode::kOk},
      {201, "{\"a\":", ApiCode::kUnavailable, ApiCode::kUnknownOutcome},
      {302, "", ApiCode::kUnavailable, ApiCode::kUnknownOutcome},
      {400, "{}", ApiCode::kRejected, ApiCode::kRejected},
      {403, "{}", ApiCode::kRejected, ApiCode::kRejected},
      {403, R"({"details":{"causes":[{"reason":"NamespaceTerminating"}]}})", ApiCode::kNamespaceTerminating,
       ApiCode::kNamespaceTerminating},
      {404, "{}", ApiCode::kNotFound, ApiCode::kNotFound},
      {409, R"({"reason":"AlreadyExists"})", ApiCode::kAlreadyExists, ApiCode::kAlreadyExists},
      {409, R"({"reason":"Conflict"})", ApiCode::kConflict, ApiCode::kConflict},
      {410, "{}", ApiCode::kGone, ApiCode::kGone},
      {413, "", ApiCode::kTooLarge, ApiCode::kTooLarge},
      {422, "{}", ApiCode::kRejected, ApiCode::kRejected},
      {500, "<html>oops</html>", ApiCode::kUnavailable, ApiCode::kUnknownOutcome},
      {503, "{}", ApiCode::kUnavailable, ApiCode::kUnknownOutcome},
  };
  for (const Row& row : rows) {
    will_answer({answered(row.status, row.body)});
    EXPECT_EQ(client.get(pods(), "a", "p").code, row.for_read) << row.status << row.body;
    EXPECT_EQ(client.create(pods(), "a", body).code, row.for_write) << row.status << row.body;
  }
}

TEST_F(ClientTest, a_write_that_never_left_is_not_unknown) {
  will_answer({failed_call(Outcome::kNotSent)});
  EXPECT_EQ(client.create(pods(), "a", body).code, ApiCode::kUnavailable);
  will_answer({failed_call(Outcome::kUnknown)});
  EXPECT_EQ(client.create(pods(), "a", body).code, ApiCode::kUnknownOutcome);
}

TEST_F(ClientTest, a_429_waits_as_told_on_every_verb_and_ends_after_ten_tries) {
  will_answer({answered(429, "", {{"retry-after", "2"}}), answered(201, "{}")});
  EXPECT_TRUE(client.create(pods(), "a", body).ok());
  EXPECT_EQ(clock.sleeps(), std::vector<base::Duration>{2s});
  next = 0;
  will_answer({answered(429, "", {{"retry-after", "1"}})});
  EXPECT_EQ(client.get(pods(), "a", "p").code, ApiCode::kTooManyRequests);
  EXPECT_EQ(transport.calls().size(), 2u + 10u);
}

TEST_F(ClientTest, a_retry_after_of_hours_is_cut_to_half_a_minute) {
  will_answer({answered(429, "", {{"retry-after", "9999"}}), answered(200, "{}")});
  client.get(pods(), "a", "p");
  EXPECT_EQ(clock.sleeps(), std::vector<base::Duration>{30s});
}

TEST_F(ClientTest, a_401_reads_the_token_once_and_tries_once) {
  will_answer({answered(401, "{}"), answered(200, "{}")});
  EXPECT_TRUE(client.get(pods(), "a", "p").ok());
  EXPECT_EQ(transport.calls()[0].authorization, "Bearer 0");
  EXPECT_EQ(transport.calls()[1].authorization, "Bearer 1");
  next = 0;
  will_answer({answered(401, "{}")});
  EXPECT_EQ(client.get(pods(), "a", "p").code, ApiCode::kUnauthorized);
  EXPECT_EQ(transport.calls().size(), 4u);
}

TEST_F(ClientTest, a_delete_carries_the_uid_it_means) {
  will_answer({answered(200, "{}")});
  client.remove(pods(), "a", "p", {"uid-1", "77", 0});
  const HttpCall call = transport.calls().back();
  EXPECT_EQ(call.method, "DELETE");
  EXPECT_EQ(call.target, "/api/v1/namespaces/a/pods/p");
  const Json sent = *base::parse_json(call.body);
  EXPECT_EQ(sent["preconditions"]["uid"], "uid-1");
  EXPECT_EQ(sent["preconditions"]["resourceVersion"], "77");
  EXPECT_EQ(sent["gracePeriodSeconds"], 0);
}

TEST_F(ClientTest, a_status_patch_goes_to_the_subresource_as_merge_patch) {
  will_answer({answered(200, "{}")});
  client.merge_patch_status(trainingjobs(), "a", "t", Json::object());
  const HttpCall call = transport.calls().back();
  EXPECT_EQ(call.target,
            "/apis/training.evenkeel.dev/v1alpha1/namespaces/a/trainingjobs/t/"
            "status?fieldManager=evenkeel-operator");
  EXPECT_EQ(call.content_type, "application/merge-patch+json");
}

TEST_F(ClientTest, requests_over_the_burst_are_spaced) {
  ApiClient slow(transport, tokens, clock, {.qps = 10, .burst = 2});
  will_answer({answered(200, "{}")});
  for (int i = 0; i < 4; ++i) slow.get(pods(), "a", "p");
  EXPECT_EQ(clock.sleeps(), (std::vector<base::Duration>{100ms, 100ms}));
}

TEST_F(ClientTest, after_stop_nothing_is_sent) {
  client.stop();
  EXPECT_FALSE(client.get(pods(), "a", "p").ok());
  EXPECT_TRUE(transport.calls().empty());
}

}  // namespace
}  // namespace evenkeel::oper
