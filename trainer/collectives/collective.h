// What the ranks do together, as an interface: strategy and loop know nothing of sockets. Implementations:
// tcp (a ring); later shared memory and NCCL, each in a folder of its own below this one.
//
// One communicator for one fence (attempt, coordinator incarnation, generation). After an error or an abort
// it is of no use any more: every later call fails with the first reason. Every rank calls the same
// operations in the same order with the same counts; what differs is found by the frames' headers and named.
// One thread calls; abort from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "contract/wire.h"

namespace evenkeel::trainer {

// What one kind of operation did since the communicator was made.
struct CollectiveCount {
  std::uint64_t calls = 0;
  std::uint64_t message_bytes = 0;  // of the callers' spans
  std::uint64_t sent_bytes = 0;     // payload that this rank sent: 2(n-1)/n of the message for an all-reduce
  std::uint64_t frames = 0;         // sent; each has a header of contract::kDataHeaderBytes besides
  double seconds = 0;
};

class Collective {
 public:
  virtual ~Collective() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sum over all ranks, in place, in an order that depends on the element's index alone: the same bits on all
  // ranks and in every run. `tail` is reduced in the same operation as if it stood behind `values`: a few
  // numbers that ride with a bucket. `bucket` goes into the headers. When it returns the spans are the
  // caller's again, also after an error, but then their content is undefined.
  virtual base::Status all_reduce(std::span<float> values, std::uint32_t bucket,
                                  std::span<float> tail = {}) = 0;
  virtual base::Status all_reduce(std::span<double> values, std::uint32_t bucket,
                                  std::span<double> tail = {}) = 0;
  // Integers: any order gives the same sum. Overflow wraps; the caller keeps it from happening.
  virtual base::Status all_reduce(std::span<std::int64_t> values, std::uint32_t bucket,
                                  std::span<std::int64_t> tail = {}) = 0;
  // The root's values everywhere.
  virtual base::Status broadcast(std::span<float> values, int root) = 0;
  virtual base::Status broadcast(std::span<double> values, int root) = 0;
  // Returns when all ranks have entered.
  virtual base::Status barrier() = 0;

  // Wakes every waiter within milliseconds; the first reason stays. Any thread.
  virtual void abort(const std::string& reason) = 0;

  virtual CollectiveCount count(contract::CollectiveOp op) const = 0;
};

}  // namespace evenkeel::trainer
