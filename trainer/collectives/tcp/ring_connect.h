// Makes the two connections of a rank: to the next (we call) and from the previous (it calls). Each side proves
// with the job's key, for a nonce that the other has just made, that it belongs to the same fence, before anything
// else is read; what was recorded elsewhere proves nothing. Then the paths are chosen (ring_paths). Used by tcp_ring
// alone.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"
#include "contract/wire.h"
#include "trainer/collectives/tcp/ring_exchange.h"
#include "trainer/collectives/tcp/ring_paths.h"

namespace evenkeel::trainer {

struct RingMember {
  contract::Fence fence;
  int rank = 0;                    // position in the ring
  std::vector<std::string> peers;  // host:port by position; its size is the number of members
  std::string key;                 // of the job
  std::vector<int> names = {};     // what messages call each position; empty: by its number
  int name(int position) const {
    return names.empty() ? position : names[static_cast<std::size_t>(position)];
  }
};

// REQUIRES: at least two peers. Strangers on the listener are closed within a second and delay nobody. A next
// rank that does not listen yet is called again until the deadline. kUnavailable, kDeadlineExceeded, kAborted
// (waker), kPermissionDenied (the next rank holds another key).
base::Result<RingLinks> connect_ring(const RingMember& member, base::Listener& listener,
                                     const SharedMemoryOptions& shared_memory, base::MonotonicTime deadline,
                                     const base::Waker* waker);

}  // namespace evenkeel::trainer
