#include "trainer/collectives/tcp/ring_exchange.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

const char* op_text(contract::CollectiveOp op) {
  switch (op) {
    case contract::CollectiveOp::kAllReduce:
      return "all-reduce";
    case contract::CollectiveOp::kBroadcast:
      return "broadcast";
    case contract::CollectiveOp::kBarrier:
      return "barrier";
  }
  return "operation";
}

// Up to three pieces of memory: what is left of a header, and of a frame's elements in head and tail.
class Pieces {
 public:
  void add(std::byte* data, std::size_t size) {
    if (size > 0) pieces_[count_++] = {data, size};
  }
  // The part [from, to) in bytes of the buffer's row of elements.
  void add(const RingBuffer& buffer, std::uint64_t from, std::uint64_t to) {
    const std::uint64_t border = buffer.head.size();
    if (from < border) add(buffer.head.data() + from, static_cast<std::size_t>(std::min(to, border) - from));
    if (to > border) {
      const std::uint64_t begin = std::max(from, border) - border;
      add(buffer.tail.data() + begin, static_cast<std::size_t>(to - border - begin));
    }
  }
  msghdr message() {
    msghdr header{};
    header.msg_iov = pieces_.data();
    header.msg_iovlen = count_;
    return header;
  }

 private:
  std::array<iovec, 3> pieces_{};
  std::size_t count_ = 0;
};

template <class T>
void add_row(std::byte* destination, const std::byte* source, std::size_t bytes) {
  auto* to = reinterpret_cast<T*>(destination);
  const auto* from = reinterpret_cast<const T*>(source);
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) to[i] += from[i];
}

void add_elements(const RingBuffer& buffer, std::uint64_t from, std::span<const std::byte> source) {
  const auto add_part = [&](std::byte* to, std::span<const std::byte> part) {
    if (buffer.dtype == contract::DataType::kF64) return add_row<double>(to, part.data(), part.size());
    // Unsigned: it wraps where it overflows.
    if (buffer.dtype == contract::DataType::kI64)
      return add_row<std::uint64_t>(to, part.data(), part.size());
    add_row<float>(to, part.data(), part.size());
  };
  const std::uint64_t border = buffer.head.size();
  const std::size_t in_head =
      from < border ? std::min(source.size(), static_cast<std::size_t>(border - from)) : std::size_t{0};
  if (in_head > 0) add_part(buffer.head.data() + from, source.first(in_head));
  if (in_head < source.size()) {
    add_part(buffer.tail.data() + (from + in_head - border), source.subspan(in_head));
  }
}

enum class Moved { kNothing, kSome };

class Exchange {
 public:
  Exchange(const ExchangeSetup& setup, const RingSchedule& schedule, const RingBuffer& buffer, RingLink& next,
           RingLink& previous, std::vector<std::byte>& staging)
      : setup_(setup),
        schedule_(schedule),
        buffer_(buffer),
        next_(next),
        previous_(previous),
        staging_(staging),
        element_bytes_(contract::size_of(buffer.dtype)) {}

  Status run() {
    while (sent_ < schedule_.out.size() || received_ < schedule_.in.size()) {
      if (setup_.aborted != nullptr && setup_.aborted->load()) return stopped();
      EVENKEEL_ASSIGN(const Moved out, send_some());
      EVENKEEL_ASSIGN(const Moved in, receive_some());
      if (out == Moved::kNothing && in == Moved::kNothing) EVENKEEL_TRY(wait());
    }
    return {};
  }

 private:
  bool may_send() const { return sent_ < schedule_.out.size() && schedule_.out[sent_].needs <= received_; }

  contract::DataHeader header_of(const RingFrame& frame) const {
    contract::DataHeader header = setup_.header;
    header.ring_step = frame.step;
    header.offset = frame.offset;
    header.count = frame.count;
    return header;
  }

  Result<Moved> send_some() {
    if (!may_send()) return Moved::kNothing;
    const RingFrame& frame = schedule_.out[sent_];
    if (out_bytes_ == 0) out_header_ = contract::encode(header_of(frame));
    const std::uint64_t payload = frame.count * element_bytes_;
    const std::uint64_t begin = frame.offset * element_bytes_;
    Pieces pieces;
    if (out_bytes_ < out_header_.size())
      pieces.add(out_header_.data() + out_bytes_, out_header_.size() - out_bytes_);
    const std::uint64_t done = out_bytes_ > out_header_.size() ? out_bytes_ - out_header_.size() : 0;
    pieces.add(buffer_, begin + done, begin + payload);
    const msghdr message = pieces.message();
    const ssize_t bytes = ::sendmsg(next_.socket.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (bytes < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Moved::kNothing;
      return gone(next_, "to", std::strerror(errno));
    }
    out_bytes_ += static_cast<std::uint64_t>(bytes);
    if (out_bytes_ == out_header_.size() + payload) {
      ++sent_;
      out_bytes_ = 0;
    }
    return Moved::kSome;
  }

  Result<Moved> receive_some() {
    if (received_ == schedule_.in.size()) return Moved::kNothing;
    const RingFrame& frame = schedule_.in[received_];
    const std::uint64_t payload = frame.count * element_bytes_;
    Pieces pieces;
    if (in_bytes_ < in_header_.size()) {
      pieces.add(in_header_.data() + in_bytes_, in_header_.size() - static_cast<std::size_t>(in_bytes_));
    } else {
      const std::uint64_t done = in_bytes_ - in_header_.size();
      if (frame.add) {
        pieces.add(staging_.data() + done, static_cast<std::size_t>(payload - done));
      } else {
        pieces.add(buffer_, frame.offset * element_bytes_ + done, frame.offset * element_bytes_ + payload);
      }
    }
    msghdr message = pieces.message();
    const ssize_t bytes = ::recvmsg(previous_.socket.fd(), &message, MSG_DONTWAIT);
    if (bytes == 0) return gone(previous_, "from", "closed by the other side");
    if (bytes < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Moved::kNothing;
      return gone(previous_, "from", std::strerror(errno));
    }
    const bool was_header = in_bytes_ < in_header_.size();
    in_bytes_ += static_cast<std::uint64_t>(bytes);
    if (was_header && in_bytes_ == in_header_.size()) EVENKEEL_TRY(check_header(frame));
    if (in_bytes_ == in_header_.size() + payload) finish_incoming(frame);
    return Moved::kSome;
  }

  // Before a single element is taken: NCCL would hang here, or sum what does not belong together.
  Status check_header(const RingFrame& frame) const {
    const Result<contract::DataHeader> header = contract::decode_data(in_header_);
    if (!header.ok()) return gone(previous_, "from", header.error().message);
    contract::DataHeader expected = header_of(frame);
    expected.payload_crc = header->payload_crc;
    const std::string difference = contract::describe_difference(expected, *header);
    if (difference.empty()) return {};
    return Error{ErrorCode::kMismatch,
                 place(previous_, "from") + ": the ranks do not run the same operation: " + difference};
  }

  void finish_incoming(const RingFrame& frame) {
    if (frame.add) {
      add_elements(buffer_, frame.offset * element_bytes_,
                   std::span<const std::byte>(staging_).first(frame.count * element_bytes_));
    }
    ++received_;
    in_bytes_ = 0;
  }

  Status wait() {
    const bool sending = sent_ < schedule_.out.size();
    const bool receiving = received_ < schedule_.in.size();
    // A descriptor of -1 is left out. While our next frame waits for its twin the next rank is watched for
    // errors only.
    std::array<pollfd, 3> fds{
        {{sending ? next_.socket.fd() : -1, static_cast<short>(may_send() ? POLLOUT : 0), 0},
         {receiving ? previous_.socket.fd() : -1, POLLIN, 0},
         {setup_.waker ? setup_.waker->fd() : -1, POLLIN, 0}}};
    const auto patience_ms = std::chrono::duration_cast<std::chrono::milliseconds>(setup_.patience).count();
    const int ready =
        ::poll(fds.data(), fds.size(), static_cast<int>(std::min<std::int64_t>(patience_ms, 86'400'000)));
    if (ready < 0 && errno != EINTR)
      return Error{ErrorCode::kIo, std::string("poll: ") + std::strerror(errno)};
    if (ready == 0) return silent(receiving);
    if (fds[2].revents != 0) return stopped();
    if ((fds[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0 && !may_send()) {
      return gone(next_, "to", "connection broken");
    }
    return {};
  }

  std::string place(const RingLink& link, const char* direction) const {
    return std::string(op_text(setup_.header.op)) + " " + std::to_string(setup_.header.sequence) +
           " on rank " + std::to_string(setup_.rank) + ", ring connection " + direction + " rank " +
           std::to_string(link.rank) + " (" + link.address + ")";
  }

  Error stopped() const { return {ErrorCode::kAborted, "aborted in " + place(previous_, "from")}; }

  Error gone(const RingLink& link, const char* direction, const std::string& cause) const {
    return {ErrorCode::kUnavailable, place(link, direction) + ": " + cause};
  }

  Error silent(bool receiving) const {
    const auto seconds = static_cast<std::int64_t>(base::seconds(setup_.patience));
    const RingLink& link = receiving ? previous_ : next_;
    return {ErrorCode::kDeadlineExceeded,
            place(link, receiving ? "from" : "to") + ": nothing moved for " + std::to_string(seconds) + " s"};
  }

  const ExchangeSetup& setup_;
  const RingSchedule& schedule_;
  const RingBuffer& buffer_;
  RingLink& next_;
  RingLink& previous_;
  std::vector<std::byte>& staging_;
  const std::uint64_t element_bytes_;
  std::size_t sent_ = 0;         // complete frames
  std::size_t received_ = 0;     // complete frames
  std::uint64_t out_bytes_ = 0;  // of the frame that is being sent, header included
  std::uint64_t in_bytes_ = 0;   // of the frame that is being received, header included
  std::array<std::byte, contract::kDataHeaderBytes> out_header_{};
  std::array<std::byte, contract::kDataHeaderBytes> in_header_{};
};

}  // namespace

Status exchange(const ExchangeSetup& setup, const RingSchedule& schedule, const RingBuffer& buffer,
                RingLink& next, RingLink& previous, std::vector<std::byte>& staging) {
  return Exchange(setup, schedule, buffer, next, previous, staging).run();
}

}  // namespace evenkeel::trainer
