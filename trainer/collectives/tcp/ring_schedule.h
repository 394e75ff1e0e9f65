// Which frames a rank sends and receives in one collective on a ring, in which order, and what each must wait
// for. Pure values: the whole algorithm is here, the sockets are in ring_exchange.
//
// All-reduce over n ranks: the elements are cut into n segments. In step k = 0 .. 2n-3 rank r sends segment
// (r - k) mod n to r + 1 and receives segment (r - k - 1) mod n from r - 1. Up to step n - 2 what comes in is
// added, afterwards it replaces. What step k sends is what step k - 1 brought, so a frame may leave as soon
// as its twin has arrived: steps overlap, and segment i is always summed in the order i, i + 1, ...: the same
// bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evenkeel::trainer {

// 256 KiB of floats: fits a core's L2 with room to spare, and a header is 0.02 % of it.
inline constexpr std::uint64_t kChunkBytes = std::uint64_t{256} << 10;

struct RingFrame {
  std::uint16_t step = 0;
  std::uint64_t offset = 0;  // elements
  std::uint64_t count = 0;  // elements; an empty segment still has one (empty) frame: it carries the sequence
  bool add = false;         // incoming only: add to what is there, else replace it
  std::size_t needs = 0;    // outgoing only: this many incoming frames must be complete first
};

struct RingSchedule {
  std::vector<RingFrame> out;
  std::vector<RingFrame> in;
};

// REQUIRES: size >= 2, 0 <= rank, root < size.
RingSchedule all_reduce_schedule(int rank, int size, std::uint64_t elements, std::uint64_t chunk_elements);
// A pipeline from the root around the ring to the rank before it.
RingSchedule broadcast_schedule(int rank, int size, int root, std::uint64_t elements,
                                std::uint64_t chunk_elements);
// n - 1 rounds of empty frames: then everybody has heard of everybody.
RingSchedule barrier_schedule(int rank, int size);

}  // namespace evenkeel::trainer
