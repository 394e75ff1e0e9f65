// The proxy in front of a server that answers plainly, seen by a client that counts bytes.
#include "tests/support/fault_proxy/proxy.h"

#include <gtest/gtest.h>

#include <span>
#include <thread>

#include "base/socket.h"
#include "operator/kube/raw_server_fake.h"
#include "tests/support/fault_proxy/http_bytes.h"

namespace evenkeel::support {
namespace {

using namespace std::chrono_literals;

constexpr char kBody[] = R"({"kind":"Pod","note":"Grüße"})";

base::MonotonicTime in(base::Duration time) {
  return base::real_clock().now() + time;
}

std::string event(int number) {
  return R"({"type":"ADDED","object":{"n":)" + std::to_string(number) + "}}\n";
}

bool eventually(const std::function<bool()>& holds) {
  for (const auto deadline = in(20s); !holds(); std::this_thread::sleep_for(1ms))
    if (in(0s) > deadline) return false;
  return true;
}

class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(*base::connect_to({"127.0.0.1", port}, in(10s), nullptr)) {}
  void send(const std::string& text) {
    EXPECT_TRUE(socket_.send_all(std::as_bytes(std::span(text)), in(10s), nullptr).ok());
  }
  void get(const std::string& target) { send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"); }
  void post(const std::string& body) {
    send("POST /api/v1/namespaces/a/pods HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body);
  }
  // Head and body of one answer; "" as the body of one that was cut off.
  std::pair<std::string, std::string> answer() {
    std::optional<HttpHead> head;
    while (!(head = *take_head(in_)))
      if (!more()) return {"", ""};
    BodyReader body = *BodyReader::of(*head, false);
    std::string text;
    while (true) {
      text += *body.take(in_);
      if (body.done()) return {head->text(), text};
      if (!more()) return {head->text(), ""};
    }
  }
  // Until the text has come; false when the connection ends before.
  bool sees(const std::string& text) {
    while (in_.find(text) == std::string::npos)
      if (!more()) return false;
    return true;
  }
  std::string all() {
    while (more()) {
    }
    return in_;
  }
  const std::string& so_far() const { return in_; }
  bool was_reset() const { return reset_; }

 private:
  bool more() {
    std::string bytes(4096, 0);
    const auto count = socket_.receive_some(std::as_writable_bytes(std::span(bytes)), in(20s), nullptr);
    reset_ = !count.ok();
    if (!count.ok() || *count == 0) return false;
    in_.append(bytes, 0, *count);
    return true;
  }
  base::Socket socket_;
  std::string in_;
  bool reset_ = false;
};

class FaultProxyTest : public ::testing::Test {
 protected:
  void start(const std::string& rules) {
    oper::AccessConfig access;
    access.server = {false, "127.0.0.1", server_.port(), "", ""};
    auto proxy = FaultProxy::start(access, {0, plan_of(rules), ""});
    ASSERT_TRUE(proxy.ok()) << proxy.error().message;
    proxy_ = std::move(*proxy);
  }
  static FaultPlan plan_of(const std::string& rules) {
    auto plan = parse_plan(*base::parse_json(R"({"rules": [)" + rules + "]}"));
    EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
    return *plan;
  }
  void serve(oper::RawConnection& connection) {
    for (std::string head; !(head = connection.read_request()).empty();) {
      ++requests_;
      if (head.find("watch=true") == std::string::npos) {
        connection.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
                         std::to_string(sizeof kBody - 1) + "\r\n\r\n" + kBody);
        continue;
      }
      connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      // Two events in one chunk, one in two.
      connection.write(as_chunk(event(1) + event(2)));
      connection.write(as_chunk(event(3).substr(0, 9)) + as_chunk(event(3).substr(9)));
      if (head.find("short") != std::string::npos)
        connection.write(std::string(kLastChunk));
      else
        connection.hold();
    }
  }
  bool logged(Action action, const std::string& delivered) {
    return eventually([&] {
      for (const ProxyEntry& entry : proxy_->entries())
        if (entry.fault.action == action && entry.delivered == delivered) return true;
      return false;
    });
  }

  std::atomic<int> requests_{0};
  oper::RawServer server_{[this](oper::RawConnection& connection) { serve(connection); }};
  std::unique_ptr<FaultProxy> proxy_;
};

TEST_F(FaultProxyTest, without_a_rule_all_passes_on_one_connection_and_is_logged) {
  start("");
  Client client(proxy_->port());
  for (int i = 0; i < 3; ++i) {
    client.get("/api/v1/namespaces/a/pods/b");
    EXPECT_EQ(client.answer().second, kBody);
  }
  EXPECT_EQ(server_.accepted(), 1);
  EXPECT_EQ(proxy_->count("get", "pods"), 3u);
  // A line of the log is written when its answer has gone.
  ASSERT_TRUE(eventually([&] { return proxy_->entries().size() == 3; }));
  EXPECT_EQ(proxy_->entries().back().count.of_kind, 3u);
  EXPECT_EQ(proxy_->entries().back().status, 200);
}

TEST_F(FaultProxyTest, a_reply_is_lost_after_the_commit_or_the_request_before_it) {
  start(R"({"verb": "create", "first": 1, "last": 1, "action": "reset"},
           {"verb": "create", "first": 2, "last": 2, "action": "close", "when": "before"},
           {"verb": "create", "first": 3, "last": 3, "action": "close", "afterBytes": 5})");
  Client reset(proxy_->port());
  reset.post("{}");
  EXPECT_EQ(reset.all(), "");
  EXPECT_TRUE(reset.was_reset());
  EXPECT_EQ(requests_, 1);
  Client closed(proxy_->port());
  closed.post("{}");
  EXPECT_EQ(closed.all(), "");
  EXPECT_FALSE(closed.was_reset());
  EXPECT_EQ(requests_, 1) << "never reached the server";
  Client cut(proxy_->port());
  cut.post("{}");
  const std::string part = cut.all();
  EXPECT_EQ(part.substr(part.find("\r\n\r\n") + 4), std::string(kBody).substr(0, 5));
  Client whole(proxy_->port());
  whole.post("{}");
  EXPECT_EQ(whole.answer().second, kBody);
  EXPECT_EQ(requests_, 3);
}

TEST_F(FaultProxyTest, it_answers_itself_before_or_after_the_commit) {
  start(R"({"verb": "create", "last": 1, "action": "status", "when": "before", "status": 429, "retryAfterSeconds": 2},
           {"verb": "create", "last": 2, "action": "status", "status": 502, "body": "<html>", "contentType": "text/html"})");
  Client client(proxy_->port());
  client.post("{}");
  const auto [busy, status] = client.answer();
  EXPECT_NE(busy.find("429"), std::string::npos);
  EXPECT_NE(busy.find("Retry-After: 2\r\n"), std::string::npos);
  EXPECT_EQ(base::int_at(*base::parse_json(status), "code"), 429);
  EXPECT_EQ(requests_, 0);
  client.post("{}");
  const auto [head, body] = client.answer();
  EXPECT_NE(head.find("502"), std::string::npos);
  EXPECT_NE(head.find("text/html"), std::string::npos);
  EXPECT_EQ(body, "<html>");
  EXPECT_EQ(requests_, 1);
  client.post("{}");
  EXPECT_EQ(client.answer().second, kBody);
}

TEST_F(FaultProxyTest, dripped_and_split_answers_are_the_same_bytes) {
  start(R"({"verb": "get", "last": 1, "action": "split"}, {"verb": "get", "last": 2, "action": "drip", "ms": 0},
           {"verb": "watch", "action": "split", "bytes": 2})");
  Client client(proxy_->port());
  for (int i = 0; i < 3; ++i) {
    client.get("/api/v1/namespaces/a/pods/b");
    EXPECT_EQ(client.answer().second, kBody);
  }
  client.get("/api/v1/pods?watch=true&short");
  EXPECT_EQ(client.answer().second, event(1) + event(2) + event(3));
  EXPECT_TRUE(logged(Action::kSplit, "opened"));
  EXPECT_TRUE(logged(Action::kSplit, "whole"));
}

TEST_F(FaultProxyTest, a_frozen_request_waits_until_it_is_released) {
  start(R"({"verb": "get", "action": "freeze", "when": "before"}, {"verb": "list", "action": "freeze"})");
  Client before(proxy_->port()), after(proxy_->port());
  before.get("/api/v1/namespaces/a/pods/b");
  after.get("/api/v1/namespaces/a/pods");
  ASSERT_TRUE(eventually([&] { return requests_ == 1 && proxy_->count("get", "pods") == 1; }));
  EXPECT_TRUE(proxy_->entries().empty());
  proxy_->release();
  EXPECT_EQ(before.answer().second, kBody);
  EXPECT_EQ(after.answer().second, kBody);
  EXPECT_EQ(requests_, 2);
}

TEST_F(FaultProxyTest, withheld_events_come_in_order_once_released) {
  start(R"({"verb": "watch", "action": "withhold"})");
  Client client(proxy_->port());
  client.get("/api/v1/pods?watch=true");
  ASSERT_TRUE(client.sees("\r\n\r\n"));
  ASSERT_TRUE(logged(Action::kWithhold, "opened"));
  EXPECT_EQ(client.so_far().find("ADDED"), std::string::npos);
  proxy_->release();
  ASSERT_TRUE(client.sees(event(3)));
  EXPECT_LT(client.so_far().find(event(1)), client.so_far().find(event(2)));
  EXPECT_LT(client.so_far().find(event(2)), client.so_far().find(event(3)));
}

TEST_F(FaultProxyTest, late_events_come_late_each_and_a_new_plan_ends_the_wait) {
  start(R"({"verb": "watch", "first": 1, "last": 1, "action": "lag", "ms": 300},
           {"verb": "watch", "action": "lag", "ms": 3600000})");
  Client late(proxy_->port());
  const auto begin = in(0s);
  late.get("/api/v1/pods?watch=true");
  ASSERT_TRUE(late.sees(event(3)));
  EXPECT_GE(in(0s) - begin, 300ms);
  Client very_late(proxy_->port());
  very_late.get("/api/v1/pods?watch=true");
  ASSERT_TRUE(very_late.sees("\r\n\r\n"));
  proxy_->set_plan({});
  EXPECT_TRUE(very_late.sees(event(3)));
}

TEST_F(FaultProxyTest, a_watch_breaks_in_the_middle_of_an_event) {
  const std::size_t whole = event(1).size();
  start(R"({"verb": "watch", "action": "close", "afterBytes": )" + std::to_string(whole + 4) + "}");
  Client client(proxy_->port());
  client.get("/api/v1/pods?watch=true");
  const std::string all = client.all();
  EXPECT_NE(all.find(event(1)), std::string::npos);
  EXPECT_EQ(all.substr(all.size() - 4), event(2).substr(0, 4));
  EXPECT_FALSE(client.was_reset());
}

TEST_F(FaultProxyTest, it_ends_at_once_whatever_is_held_and_keeps_no_connection_of_clients_that_went) {
  start(R"({"verb": "get", "action": "silence"}, {"verb": "list", "action": "freeze"},
           {"verb": "create", "action": "drip", "ms": 60000}, {"verb": "watch", "action": "withhold"})");
  const auto ask_all = [&](std::vector<std::unique_ptr<Client>>& clients) {
    for (int i = 0; i < 4; ++i) clients.push_back(std::make_unique<Client>(proxy_->port()));
    clients[0]->get("/api/v1/namespaces/a/pods/b");
    clients[1]->get("/api/v1/pods");
    clients[2]->post("{}");
    clients[3]->get("/api/v1/pods?watch=true");
  };
  {
    std::vector<std::unique_ptr<Client>> clients;
    ask_all(clients);
    ASSERT_TRUE(eventually([&] { return requests_ == 4; }));
    EXPECT_EQ(proxy_->open_connections(), 4);
  }
  EXPECT_TRUE(eventually([&] { return proxy_->open_connections() == 0; }));
  std::vector<std::unique_ptr<Client>> clients;
  ask_all(clients);
  ASSERT_TRUE(eventually([&] { return requests_ == 8; }));
  const auto begin = in(0s);
  proxy_.reset();
  EXPECT_LT(in(0s) - begin, 1s);
}

TEST_F(FaultProxyTest, its_kubeconfig_is_one_that_the_operator_takes) {
  const auto access = oper::parse_kubeconfig(proxy_kubeconfig(4711), "/");
  ASSERT_TRUE(access.ok()) << access.error().message;
  EXPECT_EQ(access->server.port, 4711);
  EXPECT_FALSE(access->server.tls);
}

}  // namespace
}  // namespace evenkeel::support
