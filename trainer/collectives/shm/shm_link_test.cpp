#include "trainer/collectives/shm/shm_link.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
using testing::HasSubstr;

const std::string kNonce(kSegmentNonceBytes, 'n');

// Both ends, the second as it arrives in another process.
struct Pair {
  explicit Pair(std::size_t capacity) {
    auto mailbox = ShmMailbox::open();
    EXPECT_TRUE(mailbox.ok()) << mailbox.error().message;
    auto made = ShmSegment::make(capacity, kNonce);
    EXPECT_TRUE(made.ok()) << made.error().message;
    EXPECT_TRUE(post(*made, kNonce, mailbox->name()).ok());
    auto taken = mailbox->take(kNonce);
    EXPECT_TRUE(taken.ok()) << taken.error().message;
    ring = &made->ring();  // stays where it is when the segment moves
    reader = std::make_unique<ShmReader>(std::move(*made));
    writer = std::make_unique<ShmWriter>(std::move(*taken));
  }
  SharedRing* ring;
  std::unique_ptr<ShmReader> reader;
  std::unique_ptr<ShmWriter> writer;
};

iovec piece(void* data, std::size_t bytes) {
  return {data, bytes};
}

bool is_ready(pollfd fd) {
  return ::poll(&fd, 1, 0) == 1;
}

TEST(ShmLink, bytes_arrive_in_order_whatever_the_pieces_and_the_ring) {
  for (const std::size_t capacity : {64u, 4096u, 1u << 19}) {
    Pair pair(capacity);
    std::vector<std::uint8_t> sent(300'001), received(sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    std::size_t out = 0, in = 0, size = 1;
    while (in < sent.size()) {
      size = size * 5 % 9973 + 1;
      const std::size_t first = std::min(size, sent.size() - out), second = std::min(size / 3, sent.size() - out - first);
      const std::array<iovec, 2> from{piece(&sent[0] + out, first), piece(&sent[0] + out + first, second)};
      const auto written = pair.writer->write(from);
      ASSERT_TRUE(written.ok());
      out += *written;
      const std::array<iovec, 1> to{piece(&received[0] + in, std::min(size / 2 + 1, received.size() - in))};
      const auto got = pair.reader->read(to);
      ASSERT_TRUE(got.ok());
      in += *got;
    }
    EXPECT_EQ(sent, received);
    EXPECT_EQ(pair.writer->moved(), sent.size());
    EXPECT_EQ(pair.reader->moved(), sent.size());
  }
}

TEST(ShmLink, what_is_looked_at_stays_until_it_is_dropped) {
  Pair pair(64);
  std::array<char, 100> text{};
  std::iota(text.begin(), text.end(), '\0');
  const std::array<iovec, 1> all{piece(text.data(), text.size())};
  ASSERT_EQ(*pair.writer->write(all), 64u);
  EXPECT_EQ(*pair.writer->write(all), 0u) << "a full ring takes nothing";
  pair.reader->drop(40);
  ASSERT_EQ(*pair.writer->write(all), 40u);
  const auto seen = pair.reader->look();
  ASSERT_EQ(seen->size(), 24u) << "to the end of the ring";
  EXPECT_EQ(static_cast<char>((*seen)[0]), 40);
  pair.reader->drop(24);
  ASSERT_EQ(pair.reader->look()->size(), 40u);
}

TEST(ShmLink, two_threads_that_sleep_and_wake_each_other_lose_nothing) {
  Pair pair(256);
  constexpr std::uint32_t kCount = 200'000;
  const auto sleep = [](Link& link) {
    if (!link.start_sleep()) return;
    pollfd fd = link.sleep_on();
    ASSERT_EQ(::poll(&fd, 1, 20'000), 1) << "a wake-up was lost";
    link.end_sleep(true);
  };
  std::thread writer([&] {
    for (std::uint32_t i = 0; i < kCount;) {
      const std::array<iovec, 1> one{piece(&i, sizeof i)};
      const auto written = pair.writer->write(one);
      ASSERT_TRUE(written.ok());
      ASSERT_TRUE(*written == 0 || *written == sizeof i);  // the ring is a multiple of it
      if (*written == 0) sleep(*pair.writer);
      i += *written / sizeof i;
    }
  });
  for (std::uint32_t i = 0; i < kCount;) {
    std::uint32_t value = 0;
    const std::array<iovec, 1> one{piece(&value, sizeof value)};
    const auto got = pair.reader->read(one);
    ASSERT_TRUE(got.ok());
    if (*got == 0) {
      sleep(*pair.reader);
      continue;
    }
    ASSERT_EQ(value, i++);
  }
  writer.join();
}

TEST(ShmLink, a_bell_is_rung_for_a_sleeper_only) {
  Pair pair(4096);
  std::uint64_t value = 7;
  const std::array<iovec, 1> one{piece(&value, sizeof value)};
  ASSERT_TRUE(pair.writer->write(one).ok());
  EXPECT_FALSE(is_ready(pair.reader->sleep_on())) << "nobody slept";
  EXPECT_TRUE(pair.reader->ready());
  EXPECT_FALSE(pair.reader->start_sleep()) << "there is something already";
  ASSERT_EQ(*pair.reader->read(one), sizeof value);
  EXPECT_FALSE(pair.reader->ready());
  ASSERT_TRUE(pair.reader->start_sleep());
  ASSERT_TRUE(pair.writer->write(one).ok());
  EXPECT_TRUE(is_ready(pair.reader->sleep_on()));
  pair.reader->end_sleep(true);
  EXPECT_FALSE(is_ready(pair.reader->sleep_on()));
}

// Whatever the neighbour writes into its index: an error before anything is copied.
TEST(ShmLink, an_index_that_jumps_is_an_error_and_nothing_is_copied) {
  for (const std::uint64_t jump : {std::uint64_t{4097}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    Pair pair(4096);
    std::array<std::byte, 64> bytes{};
    const std::array<iovec, 1> one{piece(bytes.data(), bytes.size())};
    pair.ring->written.store(jump);
    EXPECT_TRUE(pair.reader->ready()) << "it must not be slept on";
    const auto read = pair.reader->read(one);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, ErrorCode::kCorruptData);
    EXPECT_THAT(read.error().message, HasSubstr("in a ring of 4096"));
    EXPECT_FALSE(pair.reader->look().ok());
    EXPECT_EQ(pair.reader->moved(), 0u);

    for (int i = 0; i < 64; ++i) ASSERT_EQ(*pair.writer->write(one), bytes.size());  // until it has to look
    pair.ring->read.store(jump);
    const auto written = pair.writer->write(one);
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code, ErrorCode::kCorruptData);
  }
}

TEST(ShmLink, an_index_that_goes_back_is_an_error) {
  Pair pair(4096);
  std::array<std::byte, 64> bytes{};
  const std::array<iovec, 1> one{piece(bytes.data(), bytes.size())};
  ASSERT_TRUE(pair.writer->write(one).ok());
  ASSERT_TRUE(pair.reader->read(one).ok());
  pair.ring->written.store(8);
  EXPECT_FALSE(pair.reader->read(one).ok());
}

// The numbers that a side writes itself it never reads back.
TEST(ShmLink, own_indices_in_the_segment_are_not_trusted) {
  Pair pair(4096);
  std::array<std::byte, 64> bytes{};
  const std::array<iovec, 1> one{piece(bytes.data(), bytes.size())};
  ASSERT_TRUE(pair.writer->write(one).ok());
  pair.ring->read.store(1 << 30);      // the reader's own
  pair.ring->capacity = 1 << 30;
  EXPECT_EQ(*pair.reader->read(one), 64u);
  EXPECT_EQ(pair.ring->read.load(), 64u);
}

TEST(ShmMailbox, other_post_is_thrown_away_and_its_descriptors_are_closed) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  auto mailbox = ShmMailbox::open();
  ASSERT_TRUE(mailbox.ok());
  const auto before = descriptors();
  {
    const std::string other(kSegmentNonceBytes, 'x');
    auto strange = ShmSegment::make(4096, other);
    ASSERT_TRUE(strange.ok());
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(post(*strange, other, mailbox->name()).ok());
    EXPECT_EQ(mailbox->take(kNonce).error().code, ErrorCode::kUnavailable);
    // The letter says one nonce, the memory another.
    ASSERT_TRUE(post(*strange, kNonce, mailbox->name()).ok());
    EXPECT_EQ(mailbox->take(kNonce).error().code, ErrorCode::kPermissionDenied);
  }
  EXPECT_EQ(descriptors(), before);
}

TEST(ShmMailbox, who_is_not_in_this_network_namespace_cannot_be_reached) {
  auto segment = ShmSegment::make(4096, kNonce);
  ASSERT_TRUE(segment.ok());
  const base::Status posted = post(*segment, kNonce, std::string(kMailboxNameBytes, '0'));
  ASSERT_FALSE(posted.ok());
  EXPECT_EQ(posted.error().code, ErrorCode::kUnavailable);
}

TEST(ShmSegment, memory_that_could_shrink_under_us_is_refused) {
  const auto open_with = [](int seals, std::size_t bytes) {
    base::Socket memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(memory.fd(), static_cast<off_t>(bytes)), 0);
    EXPECT_TRUE(seals == 0 || ::fcntl(memory.fd(), F_ADD_SEALS, seals) == 0);
    return ShmSegment::open(std::move(memory), base::Socket(::eventfd(0, 0)), base::Socket(::eventfd(0, 0)), kNonce)
        .error()
        .message;
  };
  const int sealed = F_SEAL_SHRINK | F_SEAL_GROW;
  EXPECT_THAT(open_with(0, 8192), HasSubstr("not sealed"));
  EXPECT_THAT(open_with(F_SEAL_GROW, 8192), HasSubstr("not sealed"));
  EXPECT_THAT(open_with(sealed, 100), HasSubstr("wrong size"));
  EXPECT_THAT(open_with(sealed, 4096 + 100), HasSubstr("wrong size"));
  EXPECT_THAT(open_with(sealed, 8192), HasSubstr("wrong magic"));
}

TEST(ShmSegment, a_size_that_is_no_power_of_two_is_not_made) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{63}, std::size_t{100}, kMaxSharedMemoryBytes * 2})
    EXPECT_FALSE(ShmSegment::make(capacity, kNonce).ok());
}

}  // namespace
}  // namespace evenkeel::trainer
