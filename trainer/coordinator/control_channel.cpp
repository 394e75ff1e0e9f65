#include "trainer/coordinator/control_channel.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>
#include <system_error>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;

// Read in one go at most; the caller's loop comes back for more, so that one peer cannot keep it.
constexpr std::size_t kReadBytes = 64u << 10;
constexpr base::JsonLimits kPayloadLimits{contract::kMaxControlPayloadBytes, 8};

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

Error lost(int error) {
  return {ErrorCode::kUnavailable, std::generic_category().message(error)};
}

}  // namespace

base::Result<std::optional<ControlFrame>> FrameReader::next() {
  if (buffer_.size() < contract::kControlHeaderBytes) {
    // Bytes that cannot become a frame are refused at once, not when 24 of them are there.
    const std::size_t seen = std::min<std::size_t>(buffer_.size(), 4);
    if (buffer_.compare(0, seen, "EKC1", seen) != 0) {
      return Error{ErrorCode::kCorruptData,
                   "control frame: magic is 0x" + base::to_hex(buffer_.substr(0, seen)) + ", not EKC1"};
    }
    return std::optional<ControlFrame>();
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(buffer_.data());
  EVENKEEL_ASSIGN(const contract::ControlHeader header,
                  contract::decode_control({bytes, contract::kControlHeaderBytes}, max_payload_));
  if (buffer_.size() < contract::kControlHeaderBytes + header.length) return std::optional<ControlFrame>();
  const std::string_view payload(buffer_.data() + contract::kControlHeaderBytes, header.length);
  if (base::crc32c(payload) != header.payload_crc) {
    return Error{ErrorCode::kCorruptData,
                 "control frame " + std::to_string(header.sequence) + ": payload CRC does not match"};
  }
  if (header.sequence != sequence_) {
    return Error{ErrorCode::kCorruptData, "control frame has number " + std::to_string(header.sequence) +
                                              ", expected " + std::to_string(sequence_)};
  }
  auto json = base::parse_json(payload, kPayloadLimits);
  if (!json.ok()) return Error{ErrorCode::kCorruptData, "control frame: " + json.error().message};
  ControlFrame frame{header.type, std::move(json).value()};
  ++sequence_;
  buffer_.erase(0, contract::kControlHeaderBytes + header.length);
  return std::optional<ControlFrame>(std::move(frame));
}

std::string encode_frame(contract::MessageType type, const base::Json& payload, std::uint32_t sequence) {
  const std::string text = base::dump_json(payload);
  contract::ControlHeader header;
  header.type = type;
  header.length = static_cast<std::uint32_t>(text.size());
  header.sequence = sequence;
  header.payload_crc = base::crc32c(text);
  const auto encoded = contract::encode(header);
  return std::string(reinterpret_cast<const char*>(encoded.data()), encoded.size()) + text;
}

base::Status ControlChannel::read_available() {
  if (!socket_.open()) return lost(ENOTCONN);
  std::array<char, kReadBytes> bytes;
  const ssize_t got = ::recv(socket_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got > 0) {
    reader_.append(bytes.data(), static_cast<std::size_t>(got));
    return {};
  }
  if (got == 0) return Error{ErrorCode::kUnavailable, "the other side closed the connection"};
  if (would_block(errno) || errno == EINTR) return {};
  return lost(errno);
}

base::Status ControlChannel::send(contract::MessageType type, const base::Json& payload) {
  if (!socket_.open()) return lost(ENOTCONN);
  pending_ += encode_frame(type, payload, sequence_++);
  if (pending_.size() > kMaxPendingBytes) {
    return Error{ErrorCode::kUnavailable,
                 "the other side does not read: " + std::to_string(pending_.size()) + " bytes wait"};
  }
  return flush();
}

base::Status ControlChannel::flush() {
  while (!pending_.empty()) {
    const ssize_t sent = ::send(socket_.fd(), pending_.data(), pending_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && would_block(errno)) return {};
    if (sent < 0) return lost(errno);
    pending_.erase(0, static_cast<std::size_t>(sent));
  }
  return {};
}

void ControlChannel::finish_sending() {
  if (socket_.open()) ::shutdown(socket_.fd(), SHUT_WR);
}

}  // namespace evenkeel::trainer
