#include "trainer/collectives/tcp/ring_exchange.h"

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

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
  std::span<const iovec> all() const { return {pieces_.data(), count_}; }

 private:
  std::array<iovec, 3> pieces_{};
  std::size_t count_ = 0;
};

// Four or two at once: each element's sum is what it would be alone. `source` may lie anywhere in memory that a
// neighbour writes to, so both are read by memcpy, which is one load.
template <class T>
void add_row(std::byte* to, const std::byte* source, std::size_t bytes) {
  using Lanes [[gnu::vector_size(16)]] = T;
  std::size_t at = 0;
  const auto add_at = [&]<class V>(V sum) {
    V value;
    std::memcpy(&sum, to + at, sizeof(V));
    std::memcpy(&value, source + at, sizeof(V));
    sum += value;
    std::memcpy(to + at, &sum, sizeof(V));
    at += sizeof(V);
  };
  while (at + sizeof(Lanes) <= bytes) add_at(Lanes{});
  while (at < bytes) add_at(T{});
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

// Looks between two glances at the clock, which costs more than a look.
constexpr int kLooks = 32;

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Exchange {
 public:
  Exchange(const ExchangeSetup& setup, const RingSchedule& schedule, const RingBuffer& buffer, RingLinks& links,
           std::vector<std::byte>& staging)
      : setup_(setup),
        schedule_(schedule),
        buffer_(buffer),
        links_(links),
        staging_(staging),
        element_bytes_(contract::size_of(buffer.dtype)) {}

  Status run() {
    while (sent_ < schedule_.out.size() || received_ < schedule_.in.size()) {
      if (setup_.aborted != nullptr && setup_.aborted->load()) return stopped();
      EVENKEEL_ASSIGN(const Moved out, send_some());
      EVENKEEL_ASSIGN(const Moved in, receive_some());
      if (out == Moved::kSome || in == Moved::kSome) {
        still_since_.reset();
      } else {
        EVENKEEL_TRY(wait());
      }
    }
    return {};
  }

 private:
  bool sending() const { return sent_ < schedule_.out.size(); }
  bool may_send() const { return sending() && schedule_.out[sent_].needs <= received_; }
  bool receiving() const { return received_ < schedule_.in.size(); }

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
    const Result<std::size_t> bytes = links_.out->write(pieces.all());
    if (!bytes.ok()) return gone(links_.next, "to", bytes.error().message);
    if (*bytes == 0) return Moved::kNothing;
    out_bytes_ += *bytes;
    if (out_bytes_ == out_header_.size() + payload) {
      ++sent_;
      out_bytes_ = 0;
    }
    return Moved::kSome;
  }

  Result<Moved> receive_some() {
    if (!receiving()) return Moved::kNothing;
    const RingFrame& frame = schedule_.in[received_];
    const bool was_header = in_bytes_ < in_header_.size();
    const Result<std::size_t> bytes = take(frame);
    if (!bytes.ok()) return gone(links_.previous, "from", bytes.error().message);
    if (*bytes == 0) return Moved::kNothing;
    in_bytes_ += *bytes;
    if (was_header && in_bytes_ == in_header_.size()) EVENKEEL_TRY(check_header(frame));
    if (in_bytes_ == in_header_.size() + frame.count * element_bytes_) {
      ++received_;
      in_bytes_ = added_ = 0;
    }
    return Moved::kSome;
  }

  // Some bytes of the frame, to where they belong: how many.
  Result<std::size_t> take(const RingFrame& frame) {
    Pieces pieces;
    if (in_bytes_ < in_header_.size()) {
      pieces.add(in_header_.data() + in_bytes_, in_header_.size() - static_cast<std::size_t>(in_bytes_));
      return links_.in->read(pieces.all());
    }
    const std::uint64_t done = in_bytes_ - in_header_.size();
    const std::uint64_t begin = frame.offset * element_bytes_;
    const std::uint64_t payload = frame.count * element_bytes_;
    if (frame.add) return take_and_add(begin, done, payload);
    pieces.add(buffer_, begin + done, begin + payload);
    return links_.in->read(pieces.all());
  }

  // Whole elements straight from the memory that the link shows; else, and where an element came in two parts,
  // through our own. Added as they come: the sum does not wait for the frame's end.
  Result<std::size_t> take_and_add(std::uint64_t begin, std::uint64_t done, std::uint64_t payload) {
    if (added_ == done) {
      EVENKEEL_ASSIGN(const std::span<const std::byte> seen, links_.in->look());
      std::size_t bytes = std::min(seen.size(), static_cast<std::size_t>(payload - done));
      bytes -= bytes % element_bytes_;
      if (bytes > 0) {
        add_elements(buffer_, begin + done, seen.first(bytes));
        links_.in->drop(bytes);
        added_ += bytes;
        return bytes;
      }
    }
    Pieces pieces;
    pieces.add(staging_.data() + done, static_cast<std::size_t>(payload - done));
    EVENKEEL_ASSIGN(const std::size_t bytes, links_.in->read(pieces.all()));
    const std::size_t whole = static_cast<std::size_t>(done + bytes - added_) / element_bytes_ * element_bytes_;
    if (whole > 0) {
      add_elements(buffer_, begin + added_, std::span<const std::byte>(staging_).subspan(added_, whole));
      added_ += whole;
    }
    return bytes;
  }

  // Before a single element is taken: NCCL would hang here, or sum what does not belong together.
  Status check_header(const RingFrame& frame) const {
    const Result<contract::DataHeader> header = contract::decode_data(in_header_);
    if (!header.ok()) return gone(links_.previous, "from", header.error().message);
    contract::DataHeader expected = header_of(frame);
    expected.payload_crc = header->payload_crc;
    const std::string difference = contract::describe_difference(expected, *header);
    if (difference.empty()) return {};
    return Error{ErrorCode::kMismatch,
                 place(links_.previous, "from") + ": the ranks do not run the same operation: " + difference};
  }

  // Until something may move, or an error. A neighbour's end is an error only when nothing moves any more: what
  // it sent before is still read.
  Status wait() {
    if (sending() && next_left_) return gone(links_.next, "to", "closed by the other side");
    if (receiving() && previous_left_) return gone(links_.previous, "from", "closed by the other side");
    const base::MonotonicTime now = base::real_clock().now();
    if (!still_since_) still_since_ = now;
    if (now - *still_since_ >= setup_.patience) return silent();
    if (spin(now)) return {};
    const bool out = may_send(), in = receiving();
    if (out && !links_.out->start_sleep()) return {};
    if (in && !links_.in->start_sleep()) {
      if (out) links_.out->end_sleep(false);
      return {};
    }
    return sleep(out, in, setup_.patience - (now - *still_since_));
  }

  // For as long as a trip through the kernel and back costs, where both links that we wait for are memory.
  bool spin(base::MonotonicTime begin) const {
    const bool out = may_send(), in = receiving();
    if (setup_.spin <= base::Duration::zero()) return false;
    if (out && links_.out->kind() != LinkKind::kSharedMemory) return false;
    if (in && links_.in->kind() != LinkKind::kSharedMemory) return false;
    do {
      for (int look = 0; look < kLooks; ++look) {
        if ((out && links_.out->ready()) || (in && links_.in->ready())) return true;
        pause_core();
      }
    } while (base::real_clock().now() - begin < setup_.spin);
    return false;
  }

  // While our next frame waits for its twin the next rank is watched for its end only.
  Status sleep(bool out, bool in, base::Duration most) {
    const pollfd none{-1, 0, 0};  // left out
    const auto watched = [&](bool wanted, const RingNeighbour& neighbour) {
      return wanted ? pollfd{neighbour.socket.fd(), POLLRDHUP, 0} : none;
    };
    std::array<pollfd, 5> fds{{out ? links_.out->sleep_on() : none, watched(sending(), links_.next),
                               in ? links_.in->sleep_on() : none, watched(in, links_.previous),
                               pollfd{setup_.waker ? setup_.waker->fd() : -1, POLLIN, 0}}};
    const auto most_ms = std::chrono::ceil<std::chrono::milliseconds>(most).count();
    const int ready =
        ::poll(fds.data(), fds.size(), static_cast<int>(std::min<std::int64_t>(most_ms, 86'400'000)));
    const int error = errno;
    if (out) links_.out->end_sleep(ready > 0 && fds[0].revents != 0);
    if (in) links_.in->end_sleep(ready > 0 && fds[2].revents != 0);
    if (ready < 0 && error != EINTR)
      return Error{ErrorCode::kIo, std::string("poll: ") + std::strerror(error)};
    if (ready <= 0) return {};  // wait() knows what time it is
    if (fds[4].revents != 0) return stopped();
    next_left_ = next_left_ || fds[1].revents != 0;
    previous_left_ = previous_left_ || fds[3].revents != 0;
    return {};
  }

  std::string place(const RingNeighbour& link, const char* direction) const {
    return std::string(op_text(setup_.header.op)) + " " + std::to_string(setup_.header.sequence) +
           " on rank " + std::to_string(setup_.rank) + ", ring connection " + direction + " rank " +
           std::to_string(link.rank) + " (" + link.address + ")";
  }

  Error stopped() const { return {ErrorCode::kAborted, "aborted in " + place(links_.previous, "from")}; }

  Error gone(const RingNeighbour& link, const char* direction, const std::string& cause) const {
    return {ErrorCode::kUnavailable, place(link, direction) + ": " + cause};
  }

  Error silent() const {
    const auto seconds = static_cast<std::int64_t>(base::seconds(setup_.patience));
    const RingNeighbour& link = receiving() ? links_.previous : links_.next;
    return {ErrorCode::kDeadlineExceeded,
            place(link, receiving() ? "from" : "to") + ": nothing moved for " + std::to_string(seconds) + " s"};
  }

  const ExchangeSetup& setup_;
  const RingSchedule& schedule_;
  const RingBuffer& buffer_;
  RingLinks& links_;
  std::vector<std::byte>& staging_;
  const std::uint64_t element_bytes_;
  std::size_t sent_ = 0;         // complete frames
  std::size_t received_ = 0;     // complete frames
  std::uint64_t out_bytes_ = 0;  // of the frame that is being sent, header included
  std::uint64_t in_bytes_ = 0;   // of the frame that is being received, header included
  std::uint64_t added_ = 0;      // of its payload: already in the sum
  std::optional<base::MonotonicTime> still_since_;  // since then nothing has moved
  bool next_left_ = false;                          // its connection has ended
  bool previous_left_ = false;
  std::array<std::byte, contract::kDataHeaderBytes> out_header_{};
  std::array<std::byte, contract::kDataHeaderBytes> in_header_{};
};

}  // namespace

Status exchange(const ExchangeSetup& setup, const RingSchedule& schedule, const RingBuffer& buffer,
                RingLinks& links, std::vector<std::byte>& staging) {
  return Exchange(setup, schedule, buffer, links, staging).run();
}

}  // namespace evenkeel::trainer
