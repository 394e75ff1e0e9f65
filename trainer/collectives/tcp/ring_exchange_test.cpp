// An exchange whose neighbour breaks the memory that they share. What works is tested in tcp_ring_test.
#include "trainer/collectives/tcp/ring_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "trainer/collectives/shm/shm_link.h"

namespace evenkeel::trainer {
namespace {

using base::ErrorCode;
using base::Status;
using testing::HasSubstr;

// A rank of two whose neighbour is this test: its hand is in both segments.
struct Broken {
  Broken() {
    const std::string nonce(kSegmentNonceBytes, 'n');
    auto out = ShmSegment::make(4096, nonce), in = ShmSegment::make(4096, nonce);
    EXPECT_TRUE(out.ok() && in.ok());
    out_ring = &out->ring();
    in_ring = &in->ring();
    links.out = std::make_unique<ShmWriter>(std::move(*out));
    links.in = std::make_unique<ShmReader>(std::move(*in));
    setup.patience = std::chrono::milliseconds(200);
  }
  Status all_reduce() {
    std::vector<float> values(5000);
    std::vector<std::byte> staging(kChunkBytes);
    const RingBuffer buffer{contract::DataType::kF32, std::as_writable_bytes(std::span(values)), {}};
    return exchange(setup, all_reduce_schedule(0, 2, values.size(), kChunkBytes / 4), buffer, links, staging);
  }
  SharedRing* out_ring;
  SharedRing* in_ring;
  RingLinks links;
  ExchangeSetup setup;
};

TEST(RingExchange, a_writing_index_beyond_the_ring_ends_the_operation) {
  Broken broken;
  broken.in_ring->written.store(5000);
  const Status status = broken.all_reduce();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(status.error().message, HasSubstr("the neighbour's writing index"));
}

TEST(RingExchange, a_reading_index_beyond_the_ring_ends_the_operation) {
  Broken broken;
  broken.out_ring->read.store(std::uint64_t{1} << 50);
  const Status status = broken.all_reduce();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("the neighbour's reading index"));
}

TEST(RingExchange, an_index_inside_the_ring_with_no_frame_behind_it_is_no_frame) {
  Broken broken;
  broken.in_ring->written.store(1000);
  const Status status = broken.all_reduce();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(status.error().message, HasSubstr("magic"));
}

// Bells without news must not hold the deadline up.
TEST(RingExchange, a_neighbour_that_only_rings_is_given_up_after_the_patience) {
  Broken broken;
  std::atomic<bool> over{false};
  std::thread ringer([&] {
    while (!over.load()) {
      ring_bell(broken.links.in->sleep_on().fd);
      std::this_thread::yield();
    }
  });
  const Status status = broken.all_reduce();
  over.store(true);
  ringer.join();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kDeadlineExceeded) << status.error().message;
}

}  // namespace
}  // namespace evenkeel::trainer
