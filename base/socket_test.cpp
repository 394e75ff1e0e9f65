#include "base/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <numeric>
#include <thread>
#include <vector>

namespace evenkeel::base {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

MonotonicTime in(milliseconds duration) {
  return real_clock().now() + duration;
}
// Long enough for a loaded machine: no passing test ever waits for it.
MonotonicTime soon() {
  return in(std::chrono::seconds(60));
}

struct Pair {
  Socket client, server;
};

Pair connected_pair() {
  auto listener = Listener::open({"127.0.0.1", 0});
  EXPECT_TRUE(listener.ok()) << listener.error().message;
  auto client = connect_to({"127.0.0.1", listener->port()}, soon(), nullptr);
  EXPECT_TRUE(client.ok()) << client.error().message;
  auto server = listener->accept(soon(), nullptr);
  EXPECT_TRUE(server.ok()) << server.error().message;
  return {std::move(client).value(), std::move(server).value()};
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Socket, parses_addresses_and_refuses_the_rest_by_name) {
  EXPECT_EQ(parse_address("10.0.0.7:9400").value().text(), "10.0.0.7:9400");
  EXPECT_EQ(parse_address("job-worker-0.job:1").value().host, "job-worker-0.job");
  for (const char* text : {"", "host", "host:", ":1", "host:x", "host:65536", "host:-1", "::1:80", "[::1]:80",
                           "ho st:1", "host:1 ", "host:+1"}) {
    const auto result = parse_address(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(result.error().message, HasSubstr("\"" + std::string(text) + "\""));
  }
}

TEST(Socket, moves_more_bytes_than_any_buffer_holds) {
  Pair pair = connected_pair();
  std::vector<std::uint32_t> sent(8 << 20 >> 2), received(sent.size());
  std::iota(sent.begin(), sent.end(), 7u);
  std::thread sender([&] {
    const Status status = pair.client.send_all(std::as_bytes(std::span(sent)), soon(), nullptr);
    EXPECT_TRUE(status.ok()) << status.error().message;
  });
  const Status status = pair.server.receive_all(std::as_writable_bytes(std::span(received)), soon(), nullptr);
  EXPECT_TRUE(status.ok()) << status.error().message;
  sender.join();
  EXPECT_EQ(sent, received);
}

TEST(Socket, an_empty_transfer_is_done_at_once) {
  Pair pair = connected_pair();
  EXPECT_TRUE(pair.client.send_all({}, in(milliseconds(0)), nullptr).ok());
  EXPECT_TRUE(pair.client.receive_all({}, in(milliseconds(0)), nullptr).ok());
}

TEST(Socket, receiving_ends_at_the_deadline_and_says_how_far_it_came) {
  Pair pair = connected_pair();
  ASSERT_TRUE(pair.client.send_all(bytes_of("abc"), soon(), nullptr).ok());
  std::array<std::byte, 10> buffer;
  const Status status = pair.server.receive_all(buffer, in(milliseconds(50)), nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(status.error().message, HasSubstr("receiving from 127.0.0.1:"));
  EXPECT_THAT(status.error().message, HasSubstr("3 of 10 bytes"));
}

TEST(Socket, sending_to_one_who_does_not_read_ends_at_the_deadline) {
  Pair pair = connected_pair();
  const std::vector<std::byte> much(64 << 20);
  const Status status = pair.client.send_all(much, in(milliseconds(100)), nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kDeadlineExceeded);
}

TEST(Socket, a_passed_deadline_counts_even_when_bytes_are_there) {
  Pair pair = connected_pair();
  ASSERT_TRUE(pair.client.send_all(bytes_of("abc"), soon(), nullptr).ok());
  std::array<std::byte, 3> buffer;
  EXPECT_EQ(pair.server.receive_all(buffer, in(milliseconds(-1)), nullptr).error().code,
            ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(pair.server.receive_all(buffer, soon(), nullptr).ok());
}

TEST(Socket, the_waker_ends_a_wait_of_another_thread) {
  Pair pair = connected_pair();
  Waker waker;
  std::thread other([&] { waker.wake(); });
  std::array<std::byte, 1> buffer;
  const Status status = pair.server.receive_all(buffer, soon(), &waker);
  other.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kAborted);
}

TEST(Socket, the_waker_stays_awake_until_it_is_reset) {
  Pair pair = connected_pair();
  Waker waker;
  waker.wake();
  ASSERT_TRUE(pair.client.send_all(bytes_of("a"), soon(), nullptr).ok());
  std::array<std::byte, 1> buffer;
  EXPECT_EQ(pair.server.receive_all(buffer, soon(), &waker).error().code, ErrorCode::kAborted);
  EXPECT_EQ(pair.client.send_all(bytes_of("a"), soon(), &waker).error().code, ErrorCode::kAborted);
  waker.reset();
  EXPECT_TRUE(pair.server.receive_all(buffer, soon(), &waker).ok());
}

TEST(Socket, a_closed_connection_is_unavailable) {
  Pair pair = connected_pair();
  ASSERT_TRUE(pair.client.send_all(bytes_of("ab"), soon(), nullptr).ok());
  pair.client.close();
  std::array<std::byte, 3> buffer;
  const Status status = pair.server.receive_all(buffer, soon(), nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(status.error().message, HasSubstr("2 of 3 bytes done: the other side closed"));
  EXPECT_EQ(pair.client.send_all(bytes_of("a"), soon(), nullptr).error().code, ErrorCode::kUnavailable);
}

TEST(Socket, a_reset_is_unavailable_kills_nobody_and_still_names_the_peer) {
  Pair pair = connected_pair();
  const linger abrupt{1, 0};  // close sends a reset
  setsockopt(pair.client.fd(), SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
  pair.client.close();
  std::array<std::byte, 3> buffer;
  const Status received = pair.server.receive_all(buffer, soon(), nullptr);
  ASSERT_FALSE(received.ok());
  EXPECT_EQ(received.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(received.error().message, HasSubstr("from 127.0.0.1:"));
  const Status sent =
      pair.server.send_all(bytes_of("a"), soon(), nullptr);  // SIGPIPE, were it not for MSG_NOSIGNAL
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, ErrorCode::kUnavailable);
}

TEST(Listener, says_which_port_is_taken) {
  auto first = Listener::open({"127.0.0.1", 0});
  ASSERT_TRUE(first.ok());
  const auto second = Listener::open({"127.0.0.1", first->port()});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kAlreadyExists);
  EXPECT_THAT(second.error().message, HasSubstr("127.0.0.1:" + std::to_string(first->port())));
  EXPECT_THAT(second.error().message, HasSubstr("choose another port"));
}

TEST(Listener, refuses_an_address_of_another_machine) {
  const auto listener = Listener::open({"192.0.2.1", 0});
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(listener.error().message, HasSubstr("192.0.2.1"));
}

TEST(Listener, a_passed_deadline_takes_what_waits_already) {
  auto listener = Listener::open({"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(listener->accept(real_clock().now(), nullptr).error().code, ErrorCode::kDeadlineExceeded);
  auto client = connect_to({"127.0.0.1", listener->port()}, soon(), nullptr);
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE(listener->accept(real_clock().now(), nullptr).ok());
}

TEST(Listener, accept_ends_at_the_deadline_or_by_the_waker) {
  auto listener = Listener::open({"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(listener->accept(in(milliseconds(10)), nullptr).error().code, ErrorCode::kDeadlineExceeded);
  Waker waker;
  waker.wake();
  EXPECT_EQ(listener->accept(MonotonicTime::max(), &waker).error().code, ErrorCode::kAborted);
}

TEST(Connect, a_refused_connection_and_an_unknown_name_are_unavailable) {
  auto listener = Listener::open({"127.0.0.1", 0});
  const std::uint16_t free_port = listener->port();
  listener->close();
  const auto refused = connect_to({"127.0.0.1", free_port}, soon(), nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("connecting to 127.0.0.1:" + std::to_string(free_port)));
  const auto unknown = connect_to({"no-such-host.invalid", 1}, soon(), nullptr);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(unknown.error().message, HasSubstr("no-such-host.invalid"));
}

TEST(Connect, takes_names) {
  auto listener = Listener::open({"localhost", 0});
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  const auto client = connect_to({"localhost", listener->port()}, soon(), nullptr);
  EXPECT_TRUE(client.ok()) << client.error().message;
}

TEST(Connect, the_waker_stops_it) {
  auto listener = Listener::open({"127.0.0.1", 0}, 0);
  Waker waker;
  waker.wake();
  // The queue of the listener fills up, then a connection hangs half open: that one must not.
  std::vector<Socket> sockets;
  for (int i = 0; i < 100; ++i) {
    auto socket = connect_to({"127.0.0.1", listener->port()}, soon(), &waker);
    if (!socket.ok()) {
      EXPECT_EQ(socket.error().code, ErrorCode::kAborted);
      return;
    }
    sockets.push_back(std::move(socket).value());
  }
  FAIL() << "no connection ever waited";
}

TEST(Socket, own_address_is_an_ipv4_address) {
  const std::string address = own_address();
  EXPECT_TRUE(Listener::open({address, 0}).ok()) << address;
}

}  // namespace
}  // namespace evenkeel::base
