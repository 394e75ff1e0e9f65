// One end of the control connection: frames (contract/wire.h) in and out of a socket, never blocking. Used by
// the server (one thread, many channels) and by MemberClient (one channel behind its mutex). Not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/socket.h"
#include "contract/wire.h"

namespace evenkeel::trainer {

struct ControlFrame {
  contract::MessageType type = contract::MessageType::kHeartbeat;
  base::Json payload;
};

// Bytes in, frames out. The first error is final: nothing after it can be trusted.
class FrameReader {
 public:
  explicit FrameReader(std::size_t max_payload) : max_payload_(max_payload) {}
  // Once the other side has proved itself.
  void set_max_payload(std::size_t bytes) { max_payload_ = bytes; }
  void append(const char* bytes, std::size_t count) { buffer_.append(bytes, count); }
  // Absent: the next frame is not complete. kCorruptData: magic, CRC, length, sequence or JSON is wrong.
  base::Result<std::optional<ControlFrame>> next();

 private:
  std::string buffer_;
  std::size_t max_payload_;
  std::uint32_t sequence_ = 0;
};

std::string encode_frame(contract::MessageType type, const base::Json& payload, std::uint32_t sequence);

class ControlChannel {
 public:
  explicit ControlChannel(base::Socket socket)
      : socket_(std::move(socket)), reader_(contract::kMaxFirstPayloadBytes) {}

  int fd() const { return socket_.fd(); }
  std::string peer() const { return socket_.peer(); }
  void set_max_payload(std::size_t bytes) { reader_.set_max_payload(bytes); }
  void trust_peer() { reader_.set_max_payload(contract::kMaxControlPayloadBytes); }

  // Takes what the system has for us. kUnavailable: closed or reset.
  base::Status read_available();
  base::Result<std::optional<ControlFrame>> next_frame() { return reader_.next(); }

  // Queues a frame and sends as much as the system takes; the rest goes with flush(). kUnavailable: closed,
  // or the other side has not read for so long that kMaxPendingBytes wait.
  base::Status send(contract::MessageType type, const base::Json& payload);
  base::Status flush();
  bool has_pending() const { return !pending_.empty(); }
  // No frame follows from this side; the other still may send.
  void finish_sending();
  void close() { socket_.close(); }

  static constexpr std::size_t kMaxPendingBytes = 16u << 20;

 private:
  base::Socket socket_;
  FrameReader reader_;
  std::string pending_;
  std::uint32_t sequence_ = 0;
};

}  // namespace evenkeel::trainer
