// What a broken or hostile server can do to the transport: one suite for every implementation of the
// interface. Passed: no crash, no partial event, Authorization stays on its host, memory under the cap, every
// call ends by its deadline, a write is done, not sent, or reported unknown.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/files_fake.h"
#include "operator/kube/raw_server_fake.h"
#include "operator/kube/transport_cpprest.h"

namespace evenkeel::oper {
namespace {

using namespace std::chrono_literals;

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const std::string kChunked = kOk + "Transfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& text) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return size + text + "\r\n";
}

// A transport to one raw server, with a stop watch.
class Rig {
 public:
  explicit Rig(RawServer::Handler handler) : server_(std::move(handler)) {}
  RawServer& server() { return server_; }

  HttpReply send(base::Duration deadline = 5s, std::size_t max_bytes = 1u << 20,
                 const std::string& method = "GET") {
    HttpCall call{method, "/x?y=z", method == "POST" ? "{}" : "", "application/json", "Bearer secret"};
    const base::MonotonicTime begin = base::real_clock().now();
    HttpReply reply = transport_->send(call, deadline, max_bytes);
    took_ = base::real_clock().now() - begin;
    return reply;
  }
  std::shared_ptr<Stream> watch(const WatchLimits& limits) {
    return transport_->watch({"GET", "/watch", "", "", "Bearer secret"}, limits);
  }
  base::Duration took() const { return took_; }

 private:
  static AccessConfig config(std::uint16_t port) {
    AccessConfig config;
    config.server.tls = false;
    config.server.host = "127.0.0.1";
    config.server.port = port;
    return config;
  }
  RawServer server_;
  base::FakeFiles files_;
  Credentials credentials_{config(server_.port()), files_, base::real_clock()};
  std::unique_ptr<Transport> transport_ = make_cpprest_transport(credentials_);
  base::Duration took_{0};
};

TEST(Transport, sends_what_it_was_given_and_returns_the_whole_answer) {
  std::string seen;
  Rig rig([&](RawConnection& c) {
    seen = c.read_request();
    c.write(kOk + "Retry-After: 3\r\nContent-Length: 9\r\n\r\n{\"a\": 12}");
    c.hold();
  });
  const HttpReply reply = rig.send(5s, 100, "POST");
  EXPECT_EQ(reply.outcome, Outcome::kAnswered) << reply.error;
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "{\"a\": 12}");
  EXPECT_EQ(reply.headers.at("retry-after"), "3");
  EXPECT_EQ(seen.rfind("POST /x?y=z HTTP/1.1\r\n", 0), 0u) << seen;
  EXPECT_NE(seen.find("Authorization:Bearer secret\r\n"), std::string::npos) << seen;
}

TEST(Transport, reads_a_chunked_answer_in_single_bytes) {
  Rig rig([](RawConnection& c) {
    c.read_request();
    c.write(kChunked);
    for (const char byte : std::string("{\"k\":\"\xe2\x82\xac\"}")) c.write(chunk(std::string(1, byte)));
    c.write("0\r\n\r\n");
    c.hold();
  });
  EXPECT_EQ(rig.send().body, "{\"k\":\"\xe2\x82\xac\"}");
}

TEST(Transport, keeps_the_connection_for_the_next_request) {
  Rig rig([](RawConnection& c) {
    while (!c.read_request().empty()) c.write(kOk + "Content-Length: 2\r\n\r\n{}");
  });
  // The answer is ours a moment before its connection is back in the pool, so a quick caller may open another one;
  // but not each time.
  int requests = 0;
  while (requests < 2 || (rig.server().accepted() == requests && requests < 200)) {
    ++requests;
    ASSERT_EQ(rig.send().status, 200);
  }
  EXPECT_LT(rig.server().accepted(), requests);
}

TEST(Transport, a_redirect_is_an_answer_and_nobody_else_is_called) {
  RawServer other([](RawConnection& c) { c.read_request(); });
  Rig rig([&](RawConnection& c) {
    c.read_request();
    c.write("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:" + std::to_string(other.port()) +
            "/\r\nContent-Length: 0\r\n\r\n");
    c.hold();
  });
  EXPECT_EQ(rig.send().status, 302);
  EXPECT_EQ(other.accepted(), 0);
}

TEST(Transport, a_refused_connection_was_never_sent) {
  std::uint16_t port = 0;
  {
    const RawServer gone([](RawConnection&) {});
    port = gone.port();
  }
  AccessConfig config;
  config.server = {false, "127.0.0.1", port, "", ""};
  base::FakeFiles files;
  Credentials credentials(config, files, base::real_clock());
  const auto transport = make_cpprest_transport(credentials);
  EXPECT_EQ(transport->send({"POST", "/", "{}", "application/json", ""}, 5s, 100).outcome, Outcome::kNotSent);
}

TEST(Transport, silence_after_a_write_is_unknown_at_the_deadline) {
  Rig rig([](RawConnection& c) {
    c.read_request();
    c.hold();
  });
  EXPECT_EQ(rig.send(500ms, 100, "POST").outcome, Outcome::kUnknown);
  EXPECT_LT(rig.took(), 2s);
}

TEST(Transport, a_drip_of_bytes_ends_at_the_deadline) {
  Rig rig([](RawConnection& c) {
    c.read_request();
    c.write(kOk + "Content-Length: 100\r\n\r\n");
    while (c.write("x")) c.pause(100ms);
  });
  EXPECT_EQ(rig.send(1s).outcome, Outcome::kUnknown);
  EXPECT_GE(rig.took(), 900ms);
  EXPECT_LT(rig.took(), 3s);
}

TEST(Transport, an_answer_that_breaks_off_is_no_answer) {
  for (const bool chunked : {false, true}) {
    for (const bool reset : {false, true}) {
      Rig rig([=](RawConnection& c) {
        c.read_request();
        c.write(chunked ? kChunked + chunk("{\"a\":") : kOk + "Content-Length: 100\r\n\r\n{\"a\":");
        if (reset) c.reset();
      });
      const HttpReply reply = rig.send(3s, 1000, "POST");
      EXPECT_EQ(reply.outcome, Outcome::kUnknown) << chunked << reset << " " << reply.body;
      EXPECT_LT(rig.took(), 2s);
    }
  }
}

TEST(Transport, a_connection_closed_without_an_answer_is_unknown) {
  Rig rig([](RawConnection& c) { c.read_request(); });
  const HttpReply reply = rig.send(3s, 100, "POST");
  EXPECT_EQ(reply.outcome, Outcome::kUnknown);
  EXPECT_LT(rig.took(), 4s);
}

TEST(Transport, an_endless_body_ends_at_the_cap) {
  std::atomic<std::size_t> written{0};
  Rig rig([&](RawConnection& c) {
    c.read_request();
    c.write(kChunked);
    const std::string piece = chunk(std::string(64 << 10, 'x'));
    while (c.write(piece)) written += piece.size();
  });
  EXPECT_EQ(rig.send(10s, 1u << 20).outcome, Outcome::kTooLarge);
  EXPECT_LT(rig.took(), 8s);
}

TEST(Transport, a_compressed_body_is_not_unfolded) {
  // 20 bytes of gzip that say they hold more: we never asked for it.
  Rig rig([](RawConnection& c) {
    c.read_request();
    c.write(kOk + "Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" +
            std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x04\0\x43\xbe\xb7\xe8\x01\0\0", 20));
    c.hold();
  });
  const HttpReply reply = rig.send(3s, 1000);
  EXPECT_LE(reply.body.size(), 20u);
  EXPECT_LT(rig.took(), 5s);
}

TEST(Transport, a_watch_gives_complete_lines_only) {
  Rig rig([](RawConnection& c) {
    c.read_request();
    c.write(kChunked + chunk("{\"n\":1}\n{\"n\"") + chunk(":2}\r\n") + chunk("{\"n\":3"));
    c.reset();
  });
  const auto stream = rig.watch({.deadline = 5s, .idle_limit = 5s});
  ASSERT_EQ(stream->head().status, 200) << stream->head().error;
  EXPECT_EQ(*stream->next_line(), "{\"n\":1}");
  EXPECT_EQ(*stream->next_line(), "{\"n\":2}");
  const auto end = stream->next_line();
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code, base::ErrorCode::kUnavailable) << end.error().message;
}

TEST(Transport, an_orderly_end_of_a_watch_is_told_from_a_cut) {
  Rig rig([](RawConnection& c) {
    c.read_request();
    c.write(kChunked + chunk("{\"n\":1}\n") + "0\r\n\r\n");
    c.hold();
  });
  const auto stream = rig.watch({.deadline = 5s, .idle_limit = 5s});
  EXPECT_TRUE(stream->next_line().ok());
  EXPECT_EQ(stream->next_line().error().code, base::ErrorCode::kAborted);
}

TEST(Transport, a_silent_watch_ends_at_the_idle_limit_and_a_dripping_one_at_the_deadline) {
  for (const bool drips : {false, true}) {
    Rig rig([=](RawConnection& c) {
      c.read_request();
      c.write(kChunked);
      while (drips && c.write(chunk("x"))) c.pause(50ms);
      c.hold();
    });
    const base::MonotonicTime begin = base::real_clock().now();
    const auto stream = rig.watch({.deadline = drips ? 1s : 60s, .idle_limit = drips ? 60s : 1s});
    const auto end = stream->next_line();
    ASSERT_FALSE(end.ok());
    EXPECT_EQ(end.error().code, base::ErrorCode::kDeadlineExceeded) << end.error().message;
    EXPECT_LT(base::real_clock().now() - begin, 4s);
  }
}

TEST(Transport, an_event_over_the_cap_ends_the_watch) {
  Rig rig([](RawConnection& c) {
    c.read_request();
    c.write(kChunked);
    const std::string piece = chunk(std::string(16 << 10, 'x'));
    while (c.write(piece)) {
    }
  });
  const auto stream = rig.watch({.deadline = 10s, .idle_limit = 10s, .max_line_bytes = 256u << 10});
  const auto end = stream->next_line();
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code, base::ErrorCode::kInvalidInput) << end.error().message;
}

TEST(Transport, a_watch_can_be_cancelled_from_another_thread) {
  Rig rig([](RawConnection& c) {
    c.read_request();
    c.write(kChunked + chunk("{\"n\":1}\n"));
    c.hold();
  });
  const auto stream = rig.watch({.deadline = 60s, .idle_limit = 60s});
  ASSERT_TRUE(stream->next_line().ok());
  std::thread canceller([&] { stream->cancel(); });
  const base::MonotonicTime begin = base::real_clock().now();
  EXPECT_FALSE(stream->next_line().ok());
  EXPECT_LT(base::real_clock().now() - begin, 5s);
  canceller.join();
}

TEST(Transport, a_refused_watch_tells_its_status_and_words) {
  Rig rig([](RawConnection& c) {
    c.read_request();
    c.write("HTTP/1.1 410 Gone\r\nContent-Length: 6\r\n\r\n{\"a\":1");
    c.hold();
  });
  const auto stream = rig.watch({.deadline = 5s, .idle_limit = 5s});
  EXPECT_EQ(stream->head().status, 410);
  EXPECT_EQ(stream->head().body, "{\"a\":1");
}

// The library's own defects C4 and C5 cannot be cured from outside; only verified TLS keeps such servers
// away. They run in a child of their own; what is asked is that it ends soon, with an error or an abort, and
// never with a made-up answer.
bool ended_without_an_answer(int status) {
  if (WIFSIGNALED(status))
    std::printf("known failure of this transport: the child died of signal %d\n", WTERMSIG(status));
  return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

[[noreturn]] void call_and_exit(RawServer::Handler handler) {
#ifndef __SANITIZE_ADDRESS__  // its shadow alone is terabytes
  const rlimit memory{1u << 30, 1u << 30};
  setrlimit(RLIMIT_AS, &memory);
#endif
  init_transport_threads(2);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(20);
  Rig rig(std::move(handler));
  _exit(rig.send(2s, 1u << 20).outcome == Outcome::kAnswered ? 1 : 0);
}

TEST(TransportDeathTest, bad_chunk_sizes_end_without_an_answer) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  for (const std::string size : {"-1", "zz", "ffffffffffffffff", "7fffffffffffffff", ""}) {
    EXPECT_EXIT(call_and_exit([&](RawConnection& c) {
                  c.read_request();
                  c.write(kChunked + size + "\r\nabc\r\n0\r\n\r\n");
                  c.hold();
                }),
                ended_without_an_answer, "")
        << size;
  }
}

TEST(TransportDeathTest, endless_headers_end_without_an_answer) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(call_and_exit([](RawConnection& c) {
                c.read_request();
                c.write("HTTP/1.1 200 OK\r\n");
                const std::string piece = "X-A: " + std::string(16 << 10, 'x') + "\r\n";
                while (c.write(piece)) {
                }
              }),
              ended_without_an_answer, "");
}

}  // namespace
}  // namespace evenkeel::oper
