// A stream of bytes from a rank to the next one, seen from either end; tcp and shm each have one of their own.
// Nothing here waits: the caller moves what can be moved and sleeps on the descriptors of both its links at once.
// Beside shared memory the TCP connection stays open, unused: its end is the neighbour's end. One thread a link.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace evenkeel::trainer {

enum class LinkKind { kTcp, kSharedMemory };
inline const char* link_kind_text(LinkKind kind) {
  return kind == LinkKind::kTcp ? "tcp" : "shared memory";
}

class Link {
 public:
  virtual ~Link() = default;
  virtual LinkKind kind() const = 0;
  // All bytes that it has moved.
  virtual std::uint64_t moved() const = 0;
  // Something can be moved now, as far as memory shows it: for a caller that looks again and again for some
  // microseconds. Never true where only the kernel knows.
  virtual bool ready() const = 0;

  // Sleeping: start_sleep, then poll on sleep_on, then end_sleep. From start_sleep on the neighbour makes the
  // descriptor ready when it has moved something; false: it has already, do not sleep.
  virtual bool start_sleep() = 0;
  virtual pollfd sleep_on() const = 0;
  // `woken`: sleep_on was ready.
  virtual void end_sleep(bool woken) = 0;
};

class OutgoingLink : public Link {
 public:
  // Takes some of the bytes, in order; 0: there is no room now. An error is for good: the neighbour is gone
  // (kUnavailable) or breaks the rules (kCorruptData).
  virtual base::Result<std::size_t> write(std::span<const iovec> pieces) = 0;
};

class IncomingLink : public Link {
 public:
  // Fills some of the pieces, in order; 0: nothing has come. Errors as above.
  virtual base::Result<std::size_t> read(std::span<const iovec> pieces) = 0;
  // What has come, without a copy, until drop(): perhaps not all of it, and always empty where there is no such
  // memory. The neighbour may still write to it: look at each byte once. Not aligned for anything.
  virtual base::Result<std::span<const std::byte>> look() = 0;
  virtual void drop(std::size_t bytes) = 0;
};

}  // namespace evenkeel::trainer
