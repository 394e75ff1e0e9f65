// Frames on the wire, byte by byte. All integers little-endian; a big-endian machine is refused at the
// handshake. Pure encoders and checked decoders; docs/wire.md has worked examples.
//
// Control (worker <-> coordinator), 24 bytes, then `length` bytes of JSON (messages.h):
//   0 magic "EKC1" | 4 type u16 | 6 zero u16 | 8 length u32 | 12 sequence u32 | 16 payload CRC-32C | 20
//   CRC-32C of bytes 0..19
// Collective data (worker -> next worker), 56 bytes, then `count` elements:
//   0 magic "EKD1" | 4 dtype u8 | 5 op u8 | 6 ring step u16 | 8 attempt u32 | 12 coordinator incarnation u32
//   16 generation u32 | 20 bucket u32 | 24 sequence u64 | 32 offset u64 (elements) | 40 count u64 (elements)
//   48 payload CRC-32C (0 = not computed) | 52 CRC-32C of bytes 0..51
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace evenkeel::contract {

// Who may speak: an older fence is void. Ordered: attempt, then coordinator incarnation, then generation.
struct Fence {
  std::uint32_t attempt = 0;
  std::uint32_t coordinator_incarnation = 0;
  std::uint32_t generation = 0;
  auto operator<=>(const Fence&) const = default;
};
std::string fence_text(const Fence& fence);  // "attempt 2, coordinator 1, generation 1"

enum class MessageType : std::uint16_t {
  kHello = 1,          // worker -> coordinator, first frame: who I am
  kChallenge = 2,      // coordinator -> worker
  kJoin = 3,           // worker -> coordinator: proof, plan hash, address, checkpoint position
  kMembership = 4,     // coordinator -> worker: all have joined, here are the peers
  kReady = 5,          // worker -> coordinator: ring stands, state restored, parameter hash
  kStepPlan = 6,       // coordinator -> worker
  kCommit = 7,         // worker -> coordinator: one step done
  kHeartbeat = 8,      // both ways
  kEvaluated = 9,      // worker -> coordinator
  kCheckpointed = 10,  // worker -> coordinator
  kStopRequest = 11,   // worker -> coordinator: I got SIGTERM
  kFailure = 12,       // worker -> coordinator: I cannot go on, and why
  kAbort = 13,         // coordinator -> worker: stop at once, and why
  kFinish = 14,        // coordinator -> worker: no step follows
  kRefused = 15,       // coordinator -> worker, instead of kChallenge or kMembership
  kRegroup = 16,       // coordinator -> worker: leave the step, the group changes
  kPaused = 17,        // worker -> coordinator: I have left it, and this is where I stand
  kBroken = 18,        // worker -> coordinator: the collectives failed, by no fault of mine
};

inline constexpr std::size_t kControlHeaderBytes = 24;
inline constexpr std::size_t kMaxFirstPayloadBytes = 4096;        // before the peer has proved anything
inline constexpr std::size_t kMaxControlPayloadBytes = 1u << 20;  // afterwards

struct ControlHeader {
  MessageType type = MessageType::kHeartbeat;
  std::uint32_t length = 0;
  std::uint32_t sequence = 0;  // counts from 0 in each direction
  std::uint32_t payload_crc = 0;
};

std::array<std::byte, kControlHeaderBytes> encode(const ControlHeader& header);
// Bad magic, CRC, type or a length over `max_payload`: kCorruptData.
base::Result<ControlHeader> decode_control(std::span<const std::byte> bytes, std::size_t max_payload);

enum class DataType : std::uint8_t { kF32 = 1, kF64 = 2, kI64 = 3 };
enum class CollectiveOp : std::uint8_t { kAllReduce = 1, kBroadcast = 2, kBarrier = 3 };
inline constexpr std::size_t size_of(DataType type) {
  return type == DataType::kF32 ? 4 : 8;
}

inline constexpr std::size_t kDataHeaderBytes = 56;
struct DataHeader {
  DataType dtype = DataType::kF32;
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::uint16_t ring_step = 0;
  Fence fence;
  std::uint32_t bucket = 0;
  std::uint64_t sequence = 0;  // number of the collective since the communicator was made
  std::uint64_t offset = 0;    // elements
  std::uint64_t count = 0;     // elements
  std::uint32_t payload_crc = 0;
  bool operator==(const DataHeader&) const = default;
};

std::array<std::byte, kDataHeaderBytes> encode(const DataHeader& header);
base::Result<DataHeader> decode_data(std::span<const std::byte> bytes);
// "" if the header is what was expected; else a sentence that names both sides' values.
std::string describe_difference(const DataHeader& expected, const DataHeader& received);

// A ring connection opens with one of these in each direction, 88 bytes:
//   0 magic "EKR1" | 4 from u32 | 8 to u32 | 12 attempt u32 | 16 coordinator incarnation u32 | 20 generation
//   u32 24 nonce[32] | 56 hmac[32] of bytes 0..55 (connector: empty peer nonce; acceptor: followed by the
//   connector's nonce)
inline constexpr std::size_t kRingHelloBytes = 88;
struct RingHello {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Fence fence;
  std::string nonce;  // 32 bytes
};
std::array<std::byte, kRingHelloBytes> encode_ring_hello(const RingHello& hello, const std::string& key,
                                                         const std::string& peer_nonce);
// Wrong key, magic: kPermissionDenied.
base::Result<RingHello> decode_ring_hello(std::span<const std::byte> bytes, const std::string& key,
                                          const std::string& peer_nonce);

}  // namespace evenkeel::contract
