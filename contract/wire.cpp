#include "contract/wire.h"

#include <cstring>
#include <type_traits>

#include "base/hash.h"

namespace evenkeel::contract {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr char kControlMagic[] = "EKC1";
constexpr char kDataMagic[] = "EKD1";
constexpr char kRingMagic[] = "EKR1";
constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kRingSignedBytes = 56;

// Little-endian, whatever the machine: byte by byte.
template <class T>
void put(std::byte* at, T value) {
  using U = std::make_unsigned_t<T>;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    at[i] = static_cast<std::byte>(static_cast<U>(value) >> (8 * i));
}

template <class T>
T get(const std::byte* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(at[i]) << (8 * i)));
  return value;
}

std::string_view text_of(const std::byte* at, std::size_t count) {
  return {reinterpret_cast<const char*>(at), count};
}

void put_text(std::byte* at, std::string_view text) {
  std::memcpy(at, text.data(), text.size());
}

bool has_magic(std::span<const std::byte> bytes, const char* magic) {
  return bytes.size() >= 4 && text_of(bytes.data(), 4) == std::string_view(magic, 4);
}

std::uint32_t crc_of(const std::byte* at, std::size_t count) {
  return base::crc32c(text_of(at, count));
}

Error corrupt(std::string what) {
  return {ErrorCode::kCorruptData, std::move(what)};
}

std::string first_bytes(std::span<const std::byte> bytes) {
  return base::to_hex(text_of(bytes.data(), std::min<std::size_t>(bytes.size(), 4)));
}

}  // namespace

std::string fence_text(const Fence& fence) {
  return "attempt " + std::to_string(fence.attempt) + ", coordinator " +
         std::to_string(fence.coordinator_incarnation) + ", generation " + std::to_string(fence.generation);
}

std::array<std::byte, kControlHeaderBytes> encode(const ControlHeader& header) {
  std::array<std::byte, kControlHeaderBytes> out{};
  put_text(&out[0], {kControlMagic, 4});
  put<std::uint16_t>(&out[4], static_cast<std::uint16_t>(header.type));
  put<std::uint32_t>(&out[8], header.length);
  put<std::uint32_t>(&out[12], header.sequence);
  put<std::uint32_t>(&out[16], header.payload_crc);
  put<std::uint32_t>(&out[20], crc_of(out.data(), 20));
  return out;
}

Result<ControlHeader> decode_control(std::span<const std::byte> bytes, std::size_t max_payload) {
  if (bytes.size() != kControlHeaderBytes)
    return corrupt("control frame: header of " + std::to_string(bytes.size()) + " bytes");
  if (!has_magic(bytes, kControlMagic))
    return corrupt("control frame: magic is 0x" + first_bytes(bytes) + ", not EKC1");
  if (get<std::uint32_t>(&bytes[20]) != crc_of(bytes.data(), 20))
    return corrupt("control frame: header CRC does not match");
  const auto type = get<std::uint16_t>(&bytes[4]);
  if (type < static_cast<std::uint16_t>(MessageType::kHello) ||
      type > static_cast<std::uint16_t>(MessageType::kBroken)) {
    return corrupt("control frame: unknown type " + std::to_string(type));
  }
  ControlHeader header{static_cast<MessageType>(type), get<std::uint32_t>(&bytes[8]),
                       get<std::uint32_t>(&bytes[12]), get<std::uint32_t>(&bytes[16])};
  if (header.length > max_payload) {
    return corrupt("control frame: payload of " + std::to_string(header.length) + " bytes, at most " +
                   std::to_string(max_payload) + " are accepted here");
  }
  return header;
}

std::array<std::byte, kDataHeaderBytes> encode(const DataHeader& header) {
  std::array<std::byte, kDataHeaderBytes> out{};
  put_text(&out[0], {kDataMagic, 4});
  put<std::uint8_t>(&out[4], static_cast<std::uint8_t>(header.dtype));
  put<std::uint8_t>(&out[5], static_cast<std::uint8_t>(header.op));
  put<std::uint16_t>(&out[6], header.ring_step);
  put<std::uint32_t>(&out[8], header.fence.attempt);
  put<std::uint32_t>(&out[12], header.fence.coordinator_incarnation);
  put<std::uint32_t>(&out[16], header.fence.generation);
  put<std::uint32_t>(&out[20], header.bucket);
  put<std::uint64_t>(&out[24], header.sequence);
  put<std::uint64_t>(&out[32], header.offset);
  put<std::uint64_t>(&out[40], header.count);
  put<std::uint32_t>(&out[48], header.payload_crc);
  put<std::uint32_t>(&out[52], crc_of(out.data(), 52));
  return out;
}

Result<DataHeader> decode_data(std::span<const std::byte> bytes) {
  if (bytes.size() != kDataHeaderBytes)
    return corrupt("data frame: header of " + std::to_string(bytes.size()) + " bytes");
  if (!has_magic(bytes, kDataMagic))
    return corrupt("data frame: magic is 0x" + first_bytes(bytes) + ", not EKD1");
  if (get<std::uint32_t>(&bytes[52]) != crc_of(bytes.data(), 52))
    return corrupt("data frame: header CRC does not match");
  DataHeader header;
  const auto dtype = get<std::uint8_t>(&bytes[4]);
  const auto op = get<std::uint8_t>(&bytes[5]);
  if (dtype < 1 || dtype > 3) return corrupt("data frame: unknown dtype " + std::to_string(dtype));
  if (op < 1 || op > 3) return corrupt("data frame: unknown operation " + std::to_string(op));
  header.dtype = static_cast<DataType>(dtype);
  header.op = static_cast<CollectiveOp>(op);
  header.ring_step = get<std::uint16_t>(&bytes[6]);
  header.fence = {get<std::uint32_t>(&bytes[8]), get<std::uint32_t>(&bytes[12]),
                  get<std::uint32_t>(&bytes[16])};
  header.bucket = get<std::uint32_t>(&bytes[20]);
  header.sequence = get<std::uint64_t>(&bytes[24]);
  header.offset = get<std::uint64_t>(&bytes[32]);
  header.count = get<std::uint64_t>(&bytes[40]);
  header.payload_crc = get<std::uint32_t>(&bytes[48]);
  return header;
}

std::string describe_difference(const DataHeader& expected, const DataHeader& received) {
  std::string out;
  auto compare = [&out](const char* name, auto ours, auto theirs) {
    if (ours == theirs) return;
    out += (out.empty() ? "" : "; ") + std::string(name) + " " + std::to_string(ours) + " expected, " +
           std::to_string(theirs) + " received";
  };
  compare("dtype", static_cast<int>(expected.dtype), static_cast<int>(received.dtype));
  compare("operation", static_cast<int>(expected.op), static_cast<int>(received.op));
  compare("attempt", expected.fence.attempt, received.fence.attempt);
  compare("coordinator incarnation", expected.fence.coordinator_incarnation,
          received.fence.coordinator_incarnation);
  compare("generation", expected.fence.generation, received.fence.generation);
  compare("sequence", expected.sequence, received.sequence);
  compare("bucket", expected.bucket, received.bucket);
  compare("ring step", expected.ring_step, received.ring_step);
  compare("offset", expected.offset, received.offset);
  compare("count", expected.count, received.count);
  return out;
}

std::array<std::byte, kRingHelloBytes> encode_ring_hello(const RingHello& hello, const std::string& key,
                                                         const std::string& peer_nonce) {
  std::array<std::byte, kRingHelloBytes> out{};
  put_text(&out[0], {kRingMagic, 4});
  put<std::uint32_t>(&out[4], hello.from);
  put<std::uint32_t>(&out[8], hello.to);
  put<std::uint32_t>(&out[12], hello.fence.attempt);
  put<std::uint32_t>(&out[16], hello.fence.coordinator_incarnation);
  put<std::uint32_t>(&out[20], hello.fence.generation);
  put_text(&out[24], std::string_view(hello.nonce).substr(0, kNonceBytes));
  const std::string proof =
      base::hmac_sha256(key, std::string(text_of(out.data(), kRingSignedBytes)) + peer_nonce);
  put_text(&out[kRingSignedBytes], proof);
  return out;
}

Result<RingHello> decode_ring_hello(std::span<const std::byte> bytes, const std::string& key,
                                    const std::string& peer_nonce) {
  if (bytes.size() != kRingHelloBytes || !has_magic(bytes, kRingMagic)) {
    return Error{
        ErrorCode::kPermissionDenied,
        "ring connection: the peer does not speak this protocol (first bytes 0x" + first_bytes(bytes) + ")"};
  }
  const std::string proof =
      base::hmac_sha256(key, std::string(text_of(bytes.data(), kRingSignedBytes)) + peer_nonce);
  if (!base::equal_secrets(proof, text_of(&bytes[kRingSignedBytes], kRingHelloBytes - kRingSignedBytes))) {
    return Error{ErrorCode::kPermissionDenied, "ring connection: the peer does not hold this job's key"};
  }
  return RingHello{
      get<std::uint32_t>(&bytes[4]),
      get<std::uint32_t>(&bytes[8]),
      {get<std::uint32_t>(&bytes[12]), get<std::uint32_t>(&bytes[16]), get<std::uint32_t>(&bytes[20])},
      std::string(text_of(&bytes[24], kNonceBytes))};
}

}  // namespace evenkeel::contract
