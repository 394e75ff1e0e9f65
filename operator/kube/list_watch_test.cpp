#include "operator/kube/list_watch.h"

#include <gtest/gtest.h>

#include "base/clock_fake.h"
#include "operator/kube/transport_fake.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

class NoTokens : public TokenSource {
 public:
  std::string authorization() override { return "Bearer t"; }
  void rejected() override { ++rejections; }
  int rejections = 0;
};

class CountingObserver : public WatchObserver {
 public:
  void watch_event(const std::string&, const std::string& type) override { ++events[type]; }
  void watch_restarted(const std::string&, const std::string& reason) override { ++restarts[reason]; }
  void watch_alive(const std::string&) override { ++alive; }
  std::map<std::string, int> events, restarts;
  int alive = 0;
};

Json pod(const std::string& name, const std::string& uid, int version, bool deleting = false) {
  Json metadata{
      {"name", name},
      {"namespace", "a"},
      {"uid", uid},
      {"resourceVersion", std::to_string(version)},
      {"labels", {{"training.evenkeel.dev/job-uid", "job-1"}, {"training.evenkeel.dev/job-name", "t"}}},
      {"managedFields", Json::array({"long"})}};
  if (deleting) metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  return Json{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}};
}

std::string page(const std::vector<Json>& items, int version, const std::string& token = "") {
  Json metadata{{"resourceVersion", std::to_string(version)}};
  if (!token.empty()) metadata["continue"] = token;
  return base::dump_json(Json{{"kind", "PodList"}, {"metadata", metadata}, {"items", items}});
}

std::string event(const std::string& type, const Json& object) {
  return base::dump_json(Json{{"type", type}, {"object", object}}) + "\n";
}

const std::string kExpired = event(
    "ERROR",
    Json{{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}, {"message", "too old resource version"}});

class ListWatchTest : public ::testing::Test {
 protected:
  ListWatchTest() {
    store.set_handler([this](const StoreChange& change) { changes.push_back(change); });
    transport.on_send = [this](const HttpCall&) {
      if (lists.empty()) return failed_call(Outcome::kNotSent);
      HttpReply reply = lists.front();
      lists.pop_front();
      return reply;
    };
    transport.on_watch = [this](const HttpCall&) -> std::shared_ptr<Stream> {
      if (watches.empty())
        return std::make_shared<FakeStream>(failed_call(Outcome::kNotSent), std::vector<std::string>{},
                                            base::ErrorCode::kUnavailable);
      auto stream = watches.front();
      watches.pop_front();
      return stream;
    };
  }

  void will_list(std::vector<Json> items, int version) {
    lists.push_back(answered(200, page(items, version)));
  }
  void will_watch(std::vector<std::string> pieces, base::ErrorCode end = base::ErrorCode::kAborted) {
    watches.push_back(std::make_shared<FakeStream>(answered(200, ""), std::move(pieces), end));
  }
  void will_refuse_watch(int status, const std::string& body,
                         std::map<std::string, std::string> headers = {}) {
    watches.push_back(std::make_shared<FakeStream>(answered(status, body, std::move(headers)),
                                                   std::vector<std::string>{}, base::ErrorCode::kAborted));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Json& object : store.of_job("job-1"))
      all.push_back(base::string_at(base::child(object, "metadata"), "name"));
    return all;
  }

  base::FakeClock clock;
  FakeTransport transport;
  NoTokens tokens;
  ApiClient client{transport, tokens, clock};
  ObjectStore store{ObjectStore::Owner::kByLabel};
  CountingObserver observer;
  ListWatch list_watch{client, {pods(), "", "training.evenkeel.dev/job-uid"}, store, &observer, 1};
  std::deque<HttpReply> lists;
  std::deque<std::shared_ptr<FakeStream>> watches;
  std::vector<StoreChange> changes;
};

TEST_F(ListWatchTest, lists_all_pages_consistently_and_watches_from_that_version) {
  lists.push_back(answered(200, page({pod("p0", "u0", 3)}, 10, "next/1")));
  lists.push_back(answered(200, page({pod("p1", "u1", 4)}, 10)));
  EXPECT_FALSE(store.synced(""));
  EXPECT_EQ(list_watch.step(), 0ns);
  EXPECT_TRUE(store.synced(""));
  EXPECT_EQ(names(), (std::vector<std::string>{"p0", "p1"}));
  will_watch({event("ADDED", pod("p2", "u2", 11))});
  list_watch.step();
  const auto calls = transport.calls();
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].target.find("resourceVersion"), std::string::npos);
  EXPECT_NE(calls[0].target.find("limit=500"), std::string::npos);
  EXPECT_NE(calls[1].target.find("continue=next%2F1"), std::string::npos);
  EXPECT_NE(calls[2].target.find("resourceVersion=10"), std::string::npos);
  EXPECT_NE(calls[2].target.find("allowWatchBookmarks=true"), std::string::npos);
  EXPECT_EQ(names(), (std::vector<std::string>{"p0", "p1", "p2"}));
}

TEST_F(ListWatchTest, drops_managed_fields) {
  will_list({pod("p0", "u0", 3)}, 10);
  list_watch.step();
  EXPECT_FALSE(base::child(*store.get("u0"), "metadata").contains("managedFields"));
}

TEST_F(ListWatchTest, an_expired_token_in_mid_list_starts_again_and_is_not_synced) {
  lists.push_back(answered(200, page({pod("p0", "u0", 3)}, 10, "token")));
  lists.push_back(answered(410, R"({"kind":"Status","reason":"Expired","code":410})"));
  EXPECT_GT(list_watch.step(), 0ns);
  EXPECT_FALSE(store.synced(""));
  EXPECT_TRUE(list_watch.needs_list());
}

TEST_F(ListWatchTest, a_410_in_the_stream_relists_once_and_the_deletion_in_the_gap_is_seen) {
  will_list({pod("p0", "u0", 3), pod("p1", "u1", 4)}, 10);
  list_watch.step();
  will_watch({kExpired});
  EXPECT_GE(list_watch.step(), 800ms);
  EXPECT_TRUE(list_watch.needs_list());
  changes.clear();
  will_list({pod("p1", "u1", 4)}, 20);
  list_watch.step();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].type, ChangeType::kDeleted);
  EXPECT_EQ(changes[0].uid, "u0");
  EXPECT_EQ(observer.restarts["expired"], 1);
  EXPECT_EQ(list_watch.version(), "20");
}

TEST_F(ListWatchTest, a_410_as_http_status_relists_too) {
  will_list({}, 10);
  list_watch.step();
  will_refuse_watch(410, R"({"kind":"Status","reason":"Expired","code":410})");
  EXPECT_GE(list_watch.step(), 800ms);
  EXPECT_TRUE(list_watch.needs_list());
}

TEST_F(ListWatchTest, a_429_waits_as_told_and_never_ends_the_watch_for_good) {
  will_list({}, 10);
  list_watch.step();
  for (int i = 0; i < 5; ++i) {
    will_refuse_watch(429, "", {{"retry-after", "1"}});
    EXPECT_EQ(list_watch.step(), 1s);
    clock.advance(1s);
  }
  will_watch({event("ADDED", pod("p0", "u0", 11))});
  list_watch.step();
  EXPECT_EQ(names(), std::vector<std::string>{"p0"});
  EXPECT_EQ(observer.restarts["error"], 5);
  EXPECT_FALSE(list_watch.needs_list());
}

TEST_F(ListWatchTest, reconnects_from_the_last_bookmark) {
  will_list({}, 10);
  list_watch.step();
  will_watch({event("BOOKMARK", Json{{"kind", "Pod"}, {"metadata", {{"resourceVersion", "55"}}}})});
  list_watch.step();
  will_watch({});
  list_watch.step();
  EXPECT_NE(transport.calls().back().target.find("resourceVersion=55"), std::string::npos);
}

TEST_F(ListWatchTest, an_orderly_close_reconnects_at_once_but_an_empty_short_watch_is_an_error) {
  will_list({}, 10);
  list_watch.step();
  will_watch({event("ADDED", pod("p0", "u0", 11))});
  EXPECT_EQ(list_watch.step(), 0ns);
  will_watch({});
  EXPECT_GE(list_watch.step(), 800ms);
  EXPECT_EQ(observer.restarts["closed"], 1);
  EXPECT_EQ(observer.restarts["error"], 1);
}

TEST_F(ListWatchTest, a_cut_stream_backs_off_and_goes_on_from_the_last_event) {
  will_list({}, 10);
  list_watch.step();
  will_watch({event("ADDED", pod("p0", "u0", 11)), "{\"type\":\"ADDED\",\"object\":{\"meta"},
             base::ErrorCode::kUnavailable);
  EXPECT_GE(list_watch.step(), 800ms);
  EXPECT_EQ(names(), std::vector<std::string>{"p0"});
  EXPECT_EQ(list_watch.version(), "11");
}

TEST_F(ListWatchTest, a_late_delete_never_removes_the_successor) {
  will_list({pod("p0", "old", 3)}, 10);
  list_watch.step();
  will_watch({event("ADDED", pod("p0", "new", 12)), event("DELETED", pod("p0", "old", 13))});
  list_watch.step();
  EXPECT_TRUE(store.get("new"));
  EXPECT_FALSE(store.get("old"));
  EXPECT_EQ(base::string_at(base::child(*store.get_by_name("a", "p0"), "metadata"), "uid"), "new");
}

TEST_F(ListWatchTest, an_object_that_is_being_deleted_is_marked) {
  will_list({pod("p0", "u0", 3)}, 10);
  list_watch.step();
  changes.clear();
  will_watch({event("MODIFIED", pod("p0", "u0", 11, true))});
  list_watch.step();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes[0].deleting);
}

TEST_F(ListWatchTest, older_versions_are_dropped_only_where_versions_can_be_compared) {
  store.put(pod("p0", "u0", 100));
  store.put(pod("p0", "u0", 99));
  EXPECT_EQ(base::string_at(base::child(*store.get("u0"), "metadata"), "resourceVersion"), "99");
  store.set_versions_comparable(true);
  store.put(pod("p0", "u0", 98));
  EXPECT_EQ(base::string_at(base::child(*store.get("u0"), "metadata"), "resourceVersion"), "99");
}

TEST_F(ListWatchTest, a_list_of_one_namespace_leaves_the_others_alone) {
  Json other = pod("p9", "u9", 1);
  other["metadata"]["namespace"] = "b";
  store.put(other);
  store.put(pod("p0", "u0", 2));
  store.keep_only("a", {});
  EXPECT_FALSE(store.get("u0"));
  EXPECT_TRUE(store.get("u9"));
}

TEST_F(ListWatchTest, failing_lists_back_off_with_growing_gaps) {
  base::Duration total{0};
  for (int i = 0; i < 5; ++i) {
    const base::Duration wait = list_watch.step();
    EXPECT_GE(wait, 800ms * (1 << i));
    total += wait;
    clock.advance(wait);
  }
  EXPECT_EQ(transport.calls().size(), 5u);
}

TEST_F(ListWatchTest, a_watch_refused_with_401_reads_the_token_again) {
  will_list({}, 10);
  list_watch.step();
  will_refuse_watch(401, "");
  EXPECT_GT(list_watch.step(), 0ns);
  EXPECT_EQ(tokens.rejections, 1);
}

}  // namespace
}  // namespace evenkeel::oper
