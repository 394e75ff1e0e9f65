// Chooses what the bytes between two neighbours go through: shared memory where both can be shown to have it, else
// the TCP connection. Shown, not guessed from names: the rank that reads makes a segment and posts it to the rank
// that writes, which finds in it the nonce that came over the connection. Other host, other pod, switched off,
// no memory: TCP, with the reason. Used by ring_connect alone; docs/wire.md has the bytes.
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"
#include "trainer/collectives/shm/shm_segment.h"
#include "trainer/collectives/tcp/ring_exchange.h"

namespace evenkeel::trainer {

enum class SharedMemory { kWherePossible, kOff };

struct SharedMemoryOptions {
  SharedMemory use = SharedMemory::kWherePossible;
  std::size_t capacity = kSharedMemoryBytes;  // bytes in flight on a link; a power of two
};

// What the connector of a connection sends before the first frame: its hello and proof, wish and verdict.
inline constexpr std::size_t kPathMessageBytes = 40;
inline constexpr std::size_t kRingOpeningBytes = 2 * contract::kRingHelloBytes + 2 * kPathMessageBytes;

// Fills `out`, `in` and the reasons. REQUIRES: both connections stand and have proved themselves. An error is the
// connection's; that there is no shared memory is none.
base::Status choose_paths(RingLinks& links, const SharedMemoryOptions& options, base::MonotonicTime deadline,
                          const base::Waker* waker);

}  // namespace evenkeel::trainer
