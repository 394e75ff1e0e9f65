#include "base/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/socket.h"

namespace evenkeel::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

MonotonicTime soon() {
  return real_clock().now() + seconds(60);
}

std::map<std::string, HttpHandler> routes() {
  return {{"/healthz",
           [](const HttpRequest&) {
             return HttpResponse{200, "text/plain; charset=utf-8", "ok\n"};
           }},
          {"/echo",
           [](const HttpRequest& r) {
             const auto agent = r.headers.find("user-agent");
             return HttpResponse{200, "x/y", r.query + "|" + (agent == r.headers.end() ? "" : agent->second)};
           }},
          {"/large",
           [](const HttpRequest&) {
             return HttpResponse{200, "x/y", std::string(3'000'000, 'x')};
           }},
          {"/throws", [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("broken"); }}};
}

std::unique_ptr<HttpServer> start(HttpServerOptions options = {}) {
  auto server = HttpServer::start(options, routes());
  EXPECT_TRUE(server.ok()) << server.error().message;
  return std::move(server).value();
}

Result<HttpResponse> get(const HttpServer& server, const std::string& path, std::size_t max_bytes = 1 << 20) {
  return http_get("127.0.0.1", server.port(), path, seconds(60), max_bytes);
}

Socket dial(const HttpServer& server) {
  return connect_to({"127.0.0.1", server.port()}, soon(), nullptr).value();
}

void say(Socket& socket, std::string_view text) {
  ASSERT_TRUE(socket.send_all(std::as_bytes(std::span(text)), soon(), nullptr).ok());
}

// All that comes until the other side closes.
std::string hear(Socket& socket) {
  std::string text;
  std::array<std::byte, 4096> piece;
  while (true) {
    const auto got = socket.receive_some(piece, soon(), nullptr);
    if (!got.ok() || *got == 0) return text;
    text.append(reinterpret_cast<const char*>(piece.data()), *got);
  }
}

std::string converse(const HttpServer& server, std::string_view request) {
  Socket socket = dial(server);
  say(socket, request);
  return hear(socket);
}

TEST(Http, serves_exact_paths) {
  const auto server = start();
  const auto ok = get(*server, "/healthz");
  ASSERT_TRUE(ok.ok()) << ok.error().message;
  EXPECT_EQ(ok->status, 200);
  EXPECT_EQ(ok->body, "ok\n");
  EXPECT_EQ(ok->content_type, "text/plain; charset=utf-8");
  EXPECT_EQ(get(*server, "/healthz/")->status, 404);
  EXPECT_EQ(get(*server, "/")->status, 404);
  EXPECT_EQ(get(*server, "/healthz?verbose=1")->status, 200);
  EXPECT_EQ(get(*server, "/throws")->status, 500);
  EXPECT_THAT(converse(*server, "GET /echo?a=1 HTTP/1.1\r\nHost: x\r\nUser-AGENT: me\r\n\r\n"),
              HasSubstr("a=1|me"));
}

TEST(Http, head_has_the_length_but_no_body) {
  const auto server = start();
  const std::string answer = converse(*server, "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(answer, testing::EndsWith("\r\n\r\n"));
}

TEST(Http, refuses_other_methods_bodies_long_heads_and_noise) {
  const auto server = start();
  const std::string post = converse(*server, "DELETE /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(post, StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(post, HasSubstr("Allow: GET, HEAD"));
  EXPECT_THAT(converse(*server, "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(
      converse(*server,
               "POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"),
      StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(converse(*server, "GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(20'000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(converse(*server, std::string(200, '\x16') + "\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(get(*server, "/healthz")->status, 200);
}

// As many half-sent requests as there are slots, and more than there are threads: a probe still gets its
// answer.
TEST(Http, half_sent_requests_do_not_stall_a_probe) {
  const auto server = start({.threads = 2, .max_connections = 64, .request_timeout = seconds(600)});
  std::vector<Socket> half_sent;
  for (int i = 0; i < 64; ++i) {
    half_sent.push_back(dial(*server));
    say(half_sent.back(), "GET /healthz HTTP/1.1\r\nHo");
  }
  const MonotonicTime before = real_clock().now();
  const auto probe = get(*server, "/healthz");
  ASSERT_TRUE(probe.ok()) << probe.error().message;
  EXPECT_EQ(probe->status, 200);
  EXPECT_LT(real_clock().now() - before, seconds(5));
  EXPECT_EQ(hear(half_sent.front()), "");  // the oldest one has made room
  say(half_sent.back(), "st: x\r\n\r\n");  // a slow one that came later is still served
  EXPECT_THAT(hear(half_sent.back()), StartsWith("HTTP/1.1 200"));
}

TEST(Http, a_half_sent_request_ends_at_its_time_out) {
  const auto server = start({.request_timeout = milliseconds(50)});
  Socket silent = dial(*server), half = dial(*server);
  say(half, "GET /healthz HTTP/1.1\r\n");
  EXPECT_EQ(hear(silent), "");
  EXPECT_EQ(hear(half), "");
}

TEST(Http, beyond_max_connections_a_new_one_is_closed_when_all_are_being_answered) {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool go = false;
  auto server = HttpServer::start({.threads = 4, .max_connections = 2, .request_timeout = seconds(600)},
                                  {{"/wait", [&](const HttpRequest&) {
                                      std::unique_lock lock(mutex);
                                      ++inside;
                                      changed.notify_all();
                                      changed.wait(lock, [&] { return go; });
                                      return HttpResponse{};
                                    }}});
  ASSERT_TRUE(server.ok());
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] { EXPECT_EQ(get(**server, "/wait")->status, 200); });
  }
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside == 2; });
  }
  EXPECT_EQ(get(**server, "/wait").error().code, ErrorCode::kUnavailable);
  {
    const std::lock_guard lock(mutex);
    go = true;
  }
  changed.notify_all();
  for (auto& client : clients) client.join();
}

TEST(Http, a_taken_port_is_named) {
  const auto server = start();
  const auto second = HttpServer::start({.port = server->port()}, routes());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kAlreadyExists);
  EXPECT_THAT(second.error().message, HasSubstr("127.0.0.1:" + std::to_string(server->port())));
  EXPECT_THAT(second.error().message, HasSubstr("choose another port"));
}

TEST(Http, stopping_closes_open_connections_and_frees_the_port) {
  auto server = start({.request_timeout = seconds(600)});
  const std::uint16_t port = server->port();
  Socket open = dial(*server);
  say(open, "GET /hea");
  server.reset();
  EXPECT_EQ(hear(open), "");
  EXPECT_TRUE(HttpServer::start({.port = port}, routes()).ok());
}

TEST(HttpClient, takes_a_large_answer_up_to_its_cap) {
  const auto server = start();
  EXPECT_EQ(get(*server, "/large", 3'000'000)->body.size(), 3'000'000u);
  const auto capped = get(*server, "/large", 2'999'999);
  ASSERT_FALSE(capped.ok());
  EXPECT_EQ(capped.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(capped.error().message, HasSubstr("2999999 bytes"));
}

// A server of a few fixed bytes, to be as bad as needed.
Result<HttpResponse> get_from(std::string_view answer, milliseconds timeout, bool closes) {
  auto listener = Listener::open({"127.0.0.1", 0});
  Waker done;
  std::thread server([&] {
    Socket socket = listener->accept(soon(), nullptr).value();
    say(socket, answer);
    std::array<std::byte, 1> rest;
    if (closes) shutdown(socket.fd(), SHUT_WR);
    while (socket.receive_some(rest, soon(), &done).ok()) {
    }
  });
  auto result = http_get("127.0.0.1", listener->port(), "/x", timeout, 1000);
  done.wake();
  server.join();
  return result;
}

TEST(HttpClient, judges_bad_servers) {
  EXPECT_EQ(get_from("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", seconds(60), true).error().code,
            ErrorCode::kUnavailable);
  EXPECT_EQ(get_from("", seconds(60), true).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(get_from("220 smtp\r\n\r\n", seconds(60), true).error().code, ErrorCode::kCorruptData);
  EXPECT_EQ(get_from("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", milliseconds(50), false).error().code,
            ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(get_from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", seconds(60),
                     false)
                ->body,
            "ab");
  EXPECT_EQ(get_from("HTTP/1.1 200 OK\r\n\r\nuntil the end", seconds(60), true)->body, "until the end");
  EXPECT_EQ(http_get("127.0.0.1", 1, "no slash", seconds(1), 1).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(http_get("127.0.0.1", 1, "/a\r\nX: y", seconds(1), 1).error().code, ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace evenkeel::base
