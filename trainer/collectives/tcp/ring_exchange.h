// Runs one collective's frames over the two links of a rank: sends to the next and receives from the previous at
// the same time, so no message is too large and no order of ranks can lock up. What kind the links are changes
// neither the frames nor the order of the sums. Used by tcp_ring alone, by one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"
#include "contract/wire.h"
#include "trainer/collectives/link.h"
#include "trainer/collectives/tcp/ring_schedule.h"

namespace evenkeel::trainer {

// The callers' memory as one row of elements: `head`, then `tail`. Sizes are multiples of the element's.
struct RingBuffer {
  contract::DataType dtype = contract::DataType::kF32;
  std::span<std::byte> head;
  std::span<std::byte> tail;
  std::uint64_t elements() const { return (head.size() + tail.size()) / contract::size_of(dtype); }
};

// One neighbour on the ring. Its connection stays open whatever the bytes go through: it tells of its death.
struct RingNeighbour {
  base::Socket socket;
  int rank = 0;
  std::string address;  // for messages
  std::string why_tcp;  // why they share no memory; empty: they do
};

struct RingLinks {
  RingNeighbour next;
  RingNeighbour previous;
  std::unique_ptr<OutgoingLink> out;
  std::unique_ptr<IncomingLink> in;
};

struct ExchangeSetup {
  int rank = 0;                 // own, for messages
  contract::DataHeader header;  // dtype, op, fence, bucket, sequence; the rest is filled in for each frame
  base::Duration patience{};    // how long nothing at all may move
  base::Duration spin{};        // how long to look at shared memory before sleeping; 0 where cores are scarce
  const base::Waker* waker = nullptr;          // woken: give up at once with kAborted
  const std::atomic<bool>* aborted = nullptr;  // the same for a call that is busy and does not wait
};

// All frames of `schedule`, or the first error: kUnavailable (a neighbour is gone, or sends what is no frame, or
// breaks the memory they share), kDeadlineExceeded, kAborted, kMismatch (the neighbour runs another operation: both named).
base::Status exchange(const ExchangeSetup& setup, const RingSchedule& schedule, const RingBuffer& buffer,
                      RingLinks& links, std::vector<std::byte>& staging);

}  // namespace evenkeel::trainer
