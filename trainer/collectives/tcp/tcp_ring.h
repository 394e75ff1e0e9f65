// Collectives over a ring of TCP connections between neighbours; where two neighbours can share memory the bytes go
// through that, and the sums are the same to the bit. Made once for each fence from the membership that the
// coordinator sent; size 1 needs no network. One thread calls, abort from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"
#include "trainer/collectives/collective.h"
#include "trainer/collectives/tcp/ring_connect.h"

namespace evenkeel::trainer {

struct TcpRingOptions {
  RingMember member;
  base::Duration connect_patience = std::chrono::seconds(60);
  // How long nothing at all may arrive inside one operation. Generous on purpose: a slow rank is a straggler,
  // and who is dead is decided by the coordinator from heartbeats; its abort wakes the ring.
  base::Duration patience = std::chrono::seconds(300);
  SharedMemoryOptions shared_memory = {};
  // Cores that the ranks may use together; fewer than ranks, or unknown: nobody looks at shared memory in a loop
  // where it could let another rank work.
  int cores = 0;
};

// The ring's patience for a job's failureDetectionSeconds.
base::Duration ring_patience(int failure_detection_seconds);

class TcpRing : public Collective {
 public:
  // Not connected yet, so that abort() can already end connect(). `listener` must outlive connect(); null for
  // one rank.
  TcpRing(TcpRingOptions options, base::Listener* listener);
  ~TcpRing() override;

  // Once, before anything else.
  base::Status connect();

  int rank() const override;
  int size() const override;
  base::Status all_reduce(std::span<float> values, std::uint32_t bucket, std::span<float> tail = {}) override;
  base::Status all_reduce(std::span<double> values, std::uint32_t bucket,
                          std::span<double> tail = {}) override;
  base::Status all_reduce(std::span<std::int64_t> values, std::uint32_t bucket,
                          std::span<std::int64_t> tail = {}) override;
  base::Status broadcast(std::span<float> values, int root) override;
  base::Status broadcast(std::span<double> values, int root) override;
  base::Status barrier() override;
  void abort(const std::string& reason) override;
  CollectiveCount count(contract::CollectiveOp op) const override;

  // What really went to the next rank, headers and opening included, to check the counts above: the kernel's count
  // of its connection, and what went through shared memory.
  std::uint64_t bytes_to_next() const;

  // What the bytes go through since connect().
  struct Path {
    LinkKind kind = LinkKind::kTcp;
    std::string why_tcp;  // why not through shared memory
  };
  Path to_next() const;
  Path from_previous() const;

 private:
  struct State;
  base::Status run(contract::CollectiveOp op, std::uint32_t bucket, int root, const RingBuffer& buffer);

  std::unique_ptr<State> state_;
};

}  // namespace evenkeel::trainer
