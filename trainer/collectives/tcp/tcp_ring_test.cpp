// Ranks are threads here, then processes; the expected sums are closed formulas. Everything runs over TCP, through
// shared memory, through so little of it that every frame wraps, and over some links of each kind.
#include "trainer/collectives/tcp/tcp_ring.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
using base::Status;
using contract::CollectiveOp;

const contract::Fence kFence{1, 1, 1};

enum class Paths { kTcp, kMemory, kLittleMemory, kMixed };

// Mixed: rank 0 has it switched off, so that its two links are TCP.
SharedMemoryOptions options_of(Paths paths, int rank) {
  SharedMemoryOptions options;
  if (paths == Paths::kTcp || (paths == Paths::kMixed && rank == 0)) options.use = SharedMemory::kOff;
  if (paths == Paths::kLittleMemory) options.capacity = 128;
  return options;
}

struct Group {
  explicit Group(int size, Paths paths_in = Paths::kMemory) : paths(paths_in) {
    for (int rank = 0; rank < size; ++rank) {
      auto listener = base::Listener::open({"127.0.0.1", 0});
      EXPECT_TRUE(listener.ok());
      peers.push_back("127.0.0.1:" + std::to_string(listener->port()));
      listeners.push_back(std::move(*listener));
    }
  }

  std::unique_ptr<TcpRing> ring(int rank, base::Duration patience = std::chrono::seconds(20)) {
    TcpRingOptions options;
    options.member = {kFence, rank, peers, "the key of this job"};
    options.connect_patience = std::chrono::seconds(10);
    options.patience = patience;
    options.shared_memory = options_of(paths, rank);
    options.cores = rank % 2 == 1 ? 64 : 0;  // some look in a loop, some sleep at once
    return std::make_unique<TcpRing>(options, &listeners[static_cast<std::size_t>(rank)]);
  }

  // One thread a rank, connected.
  void run(const std::function<void(TcpRing&)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < static_cast<int>(peers.size()); ++rank) {
      threads.emplace_back([this, rank, &body] {
        const auto own = ring(rank);
        const Status status = own->connect();
        ASSERT_TRUE(status.ok()) << status.error().message;
        body(*own);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  Paths paths;
  std::vector<base::Listener> listeners;
  std::vector<std::string> peers;
};

class Ring : public testing::TestWithParam<Paths> {};
INSTANTIATE_TEST_SUITE_P(TcpRing, Ring,
                         testing::Values(Paths::kTcp, Paths::kMemory, Paths::kLittleMemory, Paths::kMixed),
                         [](const testing::TestParamInfo<Paths>& param) {
                           switch (param.param) {
                             case Paths::kTcp:
                               return "tcp";
                             case Paths::kMemory:
                               return "memory";
                             case Paths::kLittleMemory:
                               return "little_memory";
                             case Paths::kMixed:
                               return "mixed";
                           }
                           return "";
                         });

// Rank r holds r + 1 + (i mod 7) at place i: the sum is n(n+1)/2 + n(i mod 7), exact in floats.
template <class T>
std::vector<T> values_of(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(rank + 1) + static_cast<T>(i % 7);
  return values;
}
template <class T>
T expected_sum(int size, std::size_t i) {
  return static_cast<T>(size * (size + 1) / 2) + static_cast<T>(size) * static_cast<T>(i % 7);
}

template <class T>
void check_all_reduce(Paths paths, int size, std::size_t count, std::size_t tail_count) {
  Group group(size, paths);
  group.run([&](TcpRing& ring) {
    std::vector<T> values = values_of<T>(ring.rank(), count + tail_count);
    const std::span<T> all(values);
    const Status status = ring.all_reduce(all.first(count), 3, all.subspan(count));
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], expected_sum<T>(size, i)) << "place " << i;
  });
}

TEST_P(Ring, sums_are_exact_for_every_size_and_every_count) {
  for (int size = 1; size <= 8; ++size) {
    for (const std::size_t count : {0u, 1u, 2u, 3u, 7u, 8u, 1001u, 70'001u})
      check_all_reduce<float>(GetParam(), size, count, 0);
  }
}

TEST_P(Ring, doubles_and_tails_are_part_of_the_same_sum) {
  for (int size = 1; size <= 5; ++size) {
    check_all_reduce<double>(GetParam(), size, 1001, 0);
    check_all_reduce<float>(GetParam(), size, 0, 8);
    check_all_reduce<float>(GetParam(), size, 70'001, 8);
    check_all_reduce<double>(GetParam(), size, 13, 5);
  }
}

TEST_P(Ring, messages_far_larger_than_the_kernels_buffers_do_not_lock_up) {
  for (const int size : {2, 3}) check_all_reduce<float>(GetParam(), size, GetParam() == Paths::kLittleMemory ? 80'003 : 8'000'003, 8);
}

// Sums that depend on their order.
std::vector<float> awkward_values(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::sin(static_cast<float>(i % 9973) * static_cast<float>(rank + 3)) * 1e3f / 7;
  return values;
}

// By rank.
std::vector<std::vector<float>> awkward_sums(int size, std::size_t count, Paths paths) {
  std::vector<std::vector<float>> results(static_cast<std::size_t>(size));
  Group group(size, paths);
  group.run([&](TcpRing& ring) {
    std::vector<float>& values = results[static_cast<std::size_t>(ring.rank())];
    values = awkward_values(ring.rank(), count);
    ASSERT_TRUE(ring.all_reduce(std::span<float>(values), 0).ok());
  });
  return results;
}

// 200,003 floats: more than fits into the ring of a link.
TEST(TcpRing, all_ranks_hold_the_same_bits_in_every_run_and_over_every_kind_of_link) {
  for (int size = 2; size <= 5; ++size) {
    for (const std::size_t count : {0u, 1u, 77u, 5000u, 200'003u}) {
      const std::vector<float> expected = awkward_sums(size, count, Paths::kTcp).front();
      for (const Paths paths : {Paths::kTcp, Paths::kMemory, Paths::kLittleMemory, Paths::kMixed}) {
        for (const auto& values : awkward_sums(size, count, paths)) {
          ASSERT_EQ(values.size(), count);
          EXPECT_EQ(std::memcmp(values.data(), expected.data(), count * sizeof(float)), 0)
              << size << " ranks, " << count << " floats";
        }
      }
    }
  }
}

TEST(TcpRing, neighbours_use_what_both_of_them_can) {
  for (const Paths paths : {Paths::kTcp, Paths::kMemory, Paths::kMixed}) {
    Group group(4, paths);
    group.run([&](TcpRing& ring) {
      const auto shares = [&](int neighbour) {
        return paths == Paths::kMemory || (paths == Paths::kMixed && ring.rank() != 0 && neighbour != 0);
      };
      const TcpRing::Path next = ring.to_next(), previous = ring.from_previous();
      EXPECT_EQ(next.kind == LinkKind::kSharedMemory, shares((ring.rank() + 1) % 4));
      EXPECT_EQ(previous.kind == LinkKind::kSharedMemory, shares((ring.rank() + 3) % 4));
      EXPECT_EQ(next.why_tcp.empty(), next.kind == LinkKind::kSharedMemory) << next.why_tcp;
      EXPECT_EQ(previous.why_tcp.empty(), previous.kind == LinkKind::kSharedMemory) << previous.why_tcp;
    });
  }
}

TEST(TcpRing, where_no_segment_can_be_made_the_ring_goes_on_over_tcp) {
  Group group(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      TcpRingOptions options;
      options.member = {kFence, rank, group.peers, "the key of this job"};
      options.shared_memory.capacity = 100;  // no power of two
      TcpRing ring(options, &group.listeners[static_cast<std::size_t>(rank)]);
      ASSERT_TRUE(ring.connect().ok());
      EXPECT_EQ(ring.to_next().kind, LinkKind::kTcp);
      EXPECT_NE(ring.from_previous().why_tcp.find("100"), std::string::npos) << ring.from_previous().why_tcp;
      EXPECT_TRUE(ring.barrier().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Ring, broadcast_works_from_any_root_and_for_any_count) {
  for (int size = 1; size <= 5; ++size) {
    Group group(size, GetParam());
    group.run([&](TcpRing& ring) {
      for (int root = 0; root < size; ++root) {
        for (const std::size_t count : {0u, 1u, 1000u, GetParam() == Paths::kLittleMemory ? 20'003u : 200'003u}) {
          std::vector<float> values = values_of<float>(ring.rank(), count);
          ASSERT_TRUE(ring.broadcast(std::span<float>(values), root).ok());
          ASSERT_EQ(values, values_of<float>(root, count));
        }
      }
      double number = ring.rank();
      ASSERT_TRUE(ring.broadcast(std::span<double>(&number, 1), size - 1).ok());
      ASSERT_EQ(number, size - 1);
    });
  }
}

TEST_P(Ring, nobody_leaves_a_barrier_before_all_have_entered) {
  Group group(4, GetParam());
  std::atomic<int> entered{0};
  group.run([&](TcpRing& ring) {
    for (int round = 1; round <= 20; ++round) {
      ++entered;
      ASSERT_TRUE(ring.barrier().ok());
      ASSERT_GE(entered.load(), 4 * round);
    }
  });
}

TEST_P(Ring, payload_is_two_times_n_minus_one_nths_of_the_message) {
  for (const int size : {2, 3, 4, 8}) {
    Group group(size, GetParam());
    group.run([&](TcpRing& ring) {
      std::vector<float> values(GetParam() == Paths::kLittleMemory ? 100'000 : 1'000'000);
      const std::size_t bytes = values.size() * sizeof(float);
      ASSERT_TRUE(ring.all_reduce(std::span<float>(values), 0).ok());
      const CollectiveCount count = ring.count(CollectiveOp::kAllReduce);
      const double exact = 2.0 * (size - 1) / size * static_cast<double>(bytes);
      EXPECT_NEAR(static_cast<double>(count.sent_bytes), exact, 0.01 * exact);
      EXPECT_EQ(count.message_bytes, bytes);
      EXPECT_EQ(count.calls, 1u);
      // What really left: opening, headers, payload, counted by the kernel or by the link. The last of it may still be in the send
      // buffer.
      const std::uint64_t expected =
          count.sent_bytes + count.frames * contract::kDataHeaderBytes + kRingOpeningBytes;
      const auto until = base::real_clock().now() + std::chrono::seconds(10);
      while (ring.bytes_to_next() < expected && base::real_clock().now() < until)
        std::this_thread::yield();
      EXPECT_EQ(ring.bytes_to_next(), expected);
      ASSERT_TRUE(ring.barrier().ok());  // the connection must stay until the neighbour has read its counter
    });
  }
}

TEST_P(Ring, different_operations_are_refused_and_both_sides_are_named) {
  Group group(2, GetParam());
  group.run([&](TcpRing& ring) {
    std::vector<float> values(ring.rank() == 0 ? 10 : 12);
    const Status status = ring.all_reduce(std::span<float>(values), ring.rank() == 0 ? 1 : 2);
    ASSERT_FALSE(status.ok());
    if (status.error().code == ErrorCode::kUnavailable) return;  // the other side noticed first and hung up
    EXPECT_EQ(status.error().code, ErrorCode::kMismatch);
    EXPECT_NE(status.error().message.find("bucket"), std::string::npos) << status.error().message;
    EXPECT_NE(status.error().message.find("count"), std::string::npos) << status.error().message;
    EXPECT_FALSE(ring.barrier().ok()) << "a broken communicator must stay broken";
  });
}

TEST_P(Ring, abort_wakes_a_waiting_rank_within_milliseconds_and_says_why) {
  Group group(2, GetParam());
  group.run([&](TcpRing& ring) {
    if (ring.rank() == 1) {
      std::vector<float> one(1);
      ASSERT_TRUE(ring.all_reduce(std::span<float>(one), 0).ok());
      // Stays away from the second one until the other was woken: the barrier below never completes.
      EXPECT_FALSE(ring.barrier().ok());
      return;
    }
    std::vector<float> one(1);
    ASSERT_TRUE(ring.all_reduce(std::span<float>(one), 0).ok());
    base::MonotonicTime woken_at;
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      woken_at = base::real_clock().now();
      ring.abort("rank 1 is lost");
    });
    std::vector<float> many(1000);
    const Status status = ring.all_reduce(std::span<float>(many), 7);
    const base::Duration took = base::real_clock().now() - woken_at;
    aborter.join();
    ASSERT_FALSE(status.ok());
    if (status.error().code == ErrorCode::kAborted) {
      EXPECT_EQ(status.error().message, "rank 1 is lost");
      EXPECT_LT(base::seconds(took), 2.0);  // microseconds on an idle machine; the patience is 20 s
    }
  });
}

TEST(TcpRing, abort_ends_a_rank_that_waits_for_a_neighbour_to_connect) {
  Group group(3);
  const auto ring = group.ring(0);
  std::thread aborter([&] { ring->abort("given up"); });
  const Status status = ring->connect();
  aborter.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kAborted);
  EXPECT_EQ(status.error().message, "given up");
  std::vector<float> one(1);
  EXPECT_FALSE(ring->all_reduce(std::span<float>(one), 0).ok());
}

TEST_P(Ring, a_neighbour_that_goes_away_is_known_at_once) {
  Group group(3, GetParam());
  group.run([&](TcpRing& ring) {
    if (ring.rank() == 2) return;  // its ring is destroyed: the connections close
    std::vector<float> values(100);
    const Status status = ring.all_reduce(std::span<float>(values), 0);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kUnavailable) << status.error().message;
  });
}

TEST_P(Ring, a_silent_neighbour_is_given_up_after_the_patience) {
  Group group(2, GetParam());
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    const auto ring = group.ring(0, std::chrono::milliseconds(100));
    ASSERT_TRUE(ring->connect().ok());
    std::vector<float> values(10);
    const Status status = ring->all_reduce(std::span<float>(values), 0);
    over.store(true);
    over.notify_all();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kDeadlineExceeded) << status.error().message;
    EXPECT_NE(status.error().message.find("rank 1"), std::string::npos);
  });
  threads.emplace_back([&] {
    const auto ring = group.ring(1);
    ASSERT_TRUE(ring->connect().ok());
    over.wait(false);
  });
  for (std::thread& thread : threads) thread.join();
}

TEST(TcpRing, strangers_do_not_keep_the_ranks_apart) {
  Group group(2);
  std::vector<base::Socket> strangers;
  const auto deadline = base::real_clock().now() + std::chrono::seconds(5);
  for (int i = 0; i < 20; ++i) {
    auto address = base::parse_address(group.peers[static_cast<std::size_t>(i % 2)]);
    auto socket = base::connect_to(*address, deadline, nullptr);
    ASSERT_TRUE(socket.ok());
    const std::string garbage(static_cast<std::size_t>(i * 10), 'x');
    (void)socket->send_all(std::as_bytes(std::span(garbage)), deadline, nullptr);
    strangers.push_back(std::move(*socket));
  }
  const auto begin = base::real_clock().now();
  group.run([](TcpRing& ring) { EXPECT_TRUE(ring.barrier().ok()); });
  EXPECT_LT(base::seconds(base::real_clock().now() - begin), 10.0);  // one after the other: 20 s
}

TEST(TcpRing, another_key_is_refused) {
  Group group(2);
  std::thread other([&] {
    TcpRingOptions options;
    options.member = {kFence, 1, group.peers, "another key"};
    options.connect_patience = std::chrono::milliseconds(1500);
    TcpRing ring(options, &group.listeners[1]);
    EXPECT_FALSE(ring.connect().ok());
  });
  TcpRingOptions options;
  options.member = {kFence, 0, group.peers, "the key of this job"};
  options.connect_patience = std::chrono::milliseconds(1500);
  TcpRing ring(options, &group.listeners[0]);
  EXPECT_FALSE(ring.connect().ok());
  other.join();
}

TEST(TcpRing, an_older_fence_is_refused) {
  Group group(2);
  std::thread older([&] {
    TcpRingOptions options;
    options.member = {{1, 1, 0}, 1, group.peers, "the key of this job"};
    options.connect_patience = std::chrono::milliseconds(1500);
    TcpRing ring(options, &group.listeners[1]);
    EXPECT_FALSE(ring.connect().ok());
  });
  TcpRingOptions options;
  options.member = {kFence, 0, group.peers, "the key of this job"};
  options.connect_patience = std::chrono::milliseconds(1500);
  TcpRing ring(options, &group.listeners[0]);
  EXPECT_FALSE(ring.connect().ok());
  older.join();
}

// Another key, another fence, and a hello that somebody else once said.
TEST(TcpRing, a_replayed_hello_is_answered_and_takes_nobodys_place) {
  Group group(2);
  const auto deadline = base::real_clock().now() + std::chrono::seconds(20);
  // As rank 0 said it to rank 1 in this very group, with the job's key: whoever listened has these bytes.
  const contract::RingHello recorded{0, 1, kFence, std::string(32, 'r')};
  const auto hello = contract::encode_ring_hello(recorded, "the key of this job", "");
  const auto proof = contract::encode_ring_hello(recorded, "the key of this job", "proof" + std::string(32, 'o'));
  auto thief = base::connect_to(*base::parse_address(group.peers[1]), deadline, nullptr);
  ASSERT_TRUE(thief.ok());
  ASSERT_TRUE(thief->send_all(hello, deadline, nullptr).ok());
  ASSERT_TRUE(thief->send_all(proof, deadline, nullptr).ok());
  group.run([](TcpRing& ring) {
    EXPECT_TRUE(ring.barrier().ok());
    EXPECT_TRUE(ring.barrier().ok());
  });
  // It got an answer with a new nonce, and then, for the proof of an older one, the end.
  std::array<std::byte, contract::kRingHelloBytes> answer{};
  ASSERT_TRUE(thief->receive_all(answer, deadline, nullptr).ok());
  EXPECT_TRUE(contract::decode_ring_hello(answer, "the key of this job", recorded.nonce).ok());
  std::byte more{};
  const auto end = thief->receive_some({&more, 1}, deadline, nullptr);
  EXPECT_TRUE(!end.ok() || *end == 0);
}

// The same answer, sent back to its sender: it is no proof of the connector.
TEST(TcpRing, an_acceptors_answer_is_no_connectors_proof) {
  const contract::RingHello hello{0, 1, kFence, std::string(32, 'n')};
  const std::string nonce(32, 'm');
  const auto answer = contract::encode_ring_hello(hello, "key", nonce);
  EXPECT_TRUE(contract::decode_ring_hello(answer, "key", nonce).ok());
  EXPECT_FALSE(contract::decode_ring_hello(answer, "key", "proof" + nonce).ok());
}

// What a rank of its own process does; the exit status says what went wrong.
int process_of_rank(Group& group, int rank, std::size_t count) {
  const auto ring = group.ring(rank);
  const int size = static_cast<int>(group.peers.size());
  if (!ring->connect().ok()) return 10;
  std::vector<float> values = values_of<float>(rank, count);
  if (!ring->all_reduce(std::span<float>(values), 0).ok()) return 11;
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i] != expected_sum<float>(size, i)) return 12;
  }
  // A rank's sum is whole when it has received; what it sent may still stand in the kernel's queue,
  // uncounted. After the barrier the next rank has read all of it.
  if (!ring->barrier().ok()) return 13;
  const double exact = 2.0 * (size - 1) / size * static_cast<double>(count) * sizeof(float);
  const double on_the_wire =
      static_cast<double>(ring->bytes_to_next());  // headers, hello and barrier included
  return on_the_wire < exact || on_the_wire > 1.01 * exact ? 14 : 0;
}

TEST_P(Ring, ranks_may_be_processes_and_the_bytes_on_the_wire_are_the_formulas) {
  for (const int size : {2, 4}) {
    Group group(size, GetParam());
    std::vector<pid_t> children;
    for (int rank = 0; rank < size; ++rank) {
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) ::_exit(process_of_rank(group, rank, GetParam() == Paths::kLittleMemory ? 300'000 : 1'200'000));
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "exit status " << WEXITSTATUS(status);
    }
  }
}

// ---- A neighbour that is killed or stopped, as a process of its own.

// Runs `body` as rank 1 in a child; it never returns.
template <class Body>
pid_t child_rank(Group& group, Body body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const auto ring = group.ring(1);
  if (ring->connect().ok()) body(*ring);
  ::_exit(1);
}

void end(pid_t child) {
  ::kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
}

TEST_P(Ring, a_neighbour_that_is_killed_wakes_the_waiter_at_once) {
  Group group(2, GetParam());
  const pid_t child = child_rank(group, [](TcpRing& ring) {
    std::vector<float> one(1);
    (void)ring.all_reduce(std::span<float>(one), 0);
    ::raise(SIGKILL);
  });
  const auto ring = group.ring(0);
  ASSERT_TRUE(ring->connect().ok());
  std::vector<float> values(1000);
  ASSERT_TRUE(ring->all_reduce(std::span<float>(values).first(1), 0).ok());
  const auto begin = base::real_clock().now();
  const Status status = ring->all_reduce(std::span<float>(values), 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable) << status.error().message;
  EXPECT_LT(base::seconds(base::real_clock().now() - begin), 2.0);  // the patience is 20 s
  end(child);
}

// Killed between two bytes of a message that is far larger than the ring, wherever that happens to be.
TEST_P(Ring, a_neighbour_that_is_killed_in_the_middle_of_a_message_ends_the_operation) {
  Group group(2, GetParam());
  const std::size_t count = GetParam() == Paths::kLittleMemory ? 30'000 : 3'000'000;
  const pid_t child = child_rank(group, [&](TcpRing& ring) {
    std::vector<float> values(count);
    while (ring.all_reduce(std::span<float>(values), 0).ok()) {
    }
  });
  const auto ring = group.ring(0);
  ASSERT_TRUE(ring->connect().ok());
  std::vector<float> values(count);
  std::atomic<int> rounds{0};
  std::thread killer([&] {
    rounds.wait(0);
    ::kill(child, SIGKILL);
  });
  Status status;
  while ((status = ring->all_reduce(std::span<float>(values), 0)).ok()) {
    ++rounds;
    rounds.notify_all();
  }
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable) << status.error().message;
  killer.join();
  end(child);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored))
    EXPECT_EQ(entry.path().string().find("evenkeel"), std::string::npos) << entry.path();
}

TEST_P(Ring, a_neighbour_that_is_stopped_is_given_up_after_the_patience) {
  Group group(2, GetParam());
  const pid_t child = child_rank(group, [](TcpRing& ring) {
    std::vector<float> one(1);
    (void)ring.all_reduce(std::span<float>(one), 0);
    ::raise(SIGSTOP);
  });
  const auto ring = group.ring(0, std::chrono::milliseconds(300));
  ASSERT_TRUE(ring->connect().ok());
  std::vector<float> values(3'000'000);
  ASSERT_TRUE(ring->all_reduce(std::span<float>(values).first(1), 0).ok());
  const Status status = ring->all_reduce(std::span<float>(values), 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kDeadlineExceeded) << status.error().message;
  end(child);
}

TEST(TcpRing, a_ring_gives_all_its_descriptors_back) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  Group group(3);
  const auto before = descriptors();
  group.run([](TcpRing& ring) { EXPECT_TRUE(ring.barrier().ok()); });
  EXPECT_EQ(descriptors(), before);
}

}  // namespace
}  // namespace evenkeel::trainer
