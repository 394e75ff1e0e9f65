#include "contract/wire.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace evenkeel::contract {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  return base::to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

TEST(Wire, control_header_has_the_documented_bytes) {
  const auto bytes = encode(ControlHeader{MessageType::kCommit, 0x01020304, 5, 0xaabbccdd});
  EXPECT_EQ(hex(std::span(bytes).first(20)),
            "454b4331"
            "0700"
            "0000"
            "04030201"
            "05000000"
            "ddccbbaa");
}

TEST(Wire, control_header_is_read_back) {
  const auto bytes = encode(ControlHeader{MessageType::kStepPlan, 1000, 7, 42});
  const auto header = decode_control(bytes, 1000);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->type, MessageType::kStepPlan);
  EXPECT_EQ(header->length, 1000u);
  EXPECT_EQ(header->sequence, 7u);
  EXPECT_EQ(header->payload_crc, 42u);
}

TEST(Wire, every_flipped_bit_of_a_header_is_seen) {
  const auto control = encode(ControlHeader{MessageType::kHello, 17, 1, 2});
  for (std::size_t bit = 0; bit < control.size() * 8; ++bit) {
    auto damaged = control;
    damaged[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_FALSE(decode_control(damaged, 1u << 20).ok()) << "bit " << bit;
  }
  const auto data = encode(DataHeader{DataType::kF32, CollectiveOp::kAllReduce, 3, {1, 2, 3}, 4, 5, 6, 7, 8});
  for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
    auto damaged = data;
    damaged[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_FALSE(decode_data(damaged).ok()) << "bit " << bit;
  }
}

TEST(Wire, a_long_payload_is_refused_before_it_is_read) {
  const auto bytes = encode(ControlHeader{MessageType::kHello, 4097, 0, 0});
  const auto header = decode_control(bytes, kMaxFirstPayloadBytes);
  ASSERT_FALSE(header.ok());
  EXPECT_NE(header.error().message.find("4097"), std::string::npos);
}

TEST(Wire, data_header_is_read_back_and_differences_name_both_sides) {
  const DataHeader expected{DataType::kF64, CollectiveOp::kBroadcast, 1, {1, 2, 3}, 4, 5, 6, 7, 8};
  const auto received = decode_data(encode(expected));
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(*received, expected);
  DataHeader other = expected;
  other.sequence = 9;
  EXPECT_EQ(describe_difference(expected, other), "sequence 5 expected, 9 received");
}

TEST(Wire, ring_hello_needs_the_key_and_the_nonce) {
  const RingHello hello{2, 3, {1, 1, 1}, std::string(32, 'n')};
  const auto bytes = encode_ring_hello(hello, "key", "peer");
  ASSERT_TRUE(decode_ring_hello(bytes, "key", "peer").ok());
  EXPECT_EQ(decode_ring_hello(bytes, "key", "peer")->to, 3u);
  EXPECT_FALSE(decode_ring_hello(bytes, "other", "peer").ok());
  EXPECT_FALSE(decode_ring_hello(bytes, "key", "replayed").ok());
}

TEST(Wire, fences_are_ordered_by_attempt_first) {
  EXPECT_LT((Fence{1, 9, 9}), (Fence{2, 0, 0}));
  EXPECT_LT((Fence{1, 1, 9}), (Fence{1, 2, 0}));
}

}  // namespace
}  // namespace evenkeel::contract
