// Runs one collective's frames over the two connections of a rank: sends to the next and receives from the
// previous at the same time, so no message is too large and no order of ranks can lock up. Used by tcp_ring
// alone, by one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"
#include "contract/wire.h"
#include "trainer/collectives/tcp/ring_schedule.h"

namespace evenkeel::trainer {

// The callers' memory as one row of elements: `head`, then `tail`. Sizes are multiples of the element's.
struct RingBuffer {
  contract::DataType dtype = contract::DataType::kF32;
  std::span<std::byte> head;
  std::span<std::byte> tail;
  std::uint64_t elements() const { return (head.size() + tail.size()) / contract::size_of(dtype); }
};

// One neighbour on the ring.
struct RingLink {
  base::Socket socket;
  int rank = 0;         // of the neighbour
  std::string address;  // for messages
};

struct ExchangeSetup {
  int rank = 0;                 // own, for messages
  contract::DataHeader header;  // dtype, op, fence, bucket, sequence; the rest is filled in for each frame
  base::Duration patience{};    // how long nothing at all may move
  const base::Waker* waker = nullptr;          // woken: give up at once with kAborted
  const std::atomic<bool>* aborted = nullptr;  // the same for a call that is busy and does not wait
};

// All frames of `schedule`, or the first error: kUnavailable (a neighbour is gone, or sends what is no
// frame), kDeadlineExceeded, kAborted, kMismatch (the neighbour runs another operation: both named).
base::Status exchange(const ExchangeSetup& setup, const RingSchedule& schedule, const RingBuffer& buffer,
                      RingLink& next, RingLink& previous, std::vector<std::byte>& staging);

}  // namespace evenkeel::trainer
