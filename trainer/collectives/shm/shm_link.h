// The two ends of a link in shared memory: a ring of bytes with one writer and one reader, no lock and no system
// call while both keep up. Who has to wait says so in the segment and sleeps on its bell. Made by ring_paths,
// used by ring_exchange; one thread an end.
//
// Ordering. The writer copies, then stores `written` (release); the reader loads it (acquire), copies, then
// stores `read` (release), which the writer loads (acquire) before it writes there again. Sleeping needs more:
// "I sleep" then "is there news?" on one side, "news" then "does it sleep?" on the other. All four are
// sequentially consistent, so that at least one side sees the other's store and no wake-up is lost.
//
// The neighbour may be broken: of its number only the distance from our own counts, and a distance that is
// larger than the ring is an error before anything is copied. Our own number is never read back from the segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "trainer/collectives/link.h"
#include "trainer/collectives/shm/shm_segment.h"

namespace evenkeel::trainer {

// What one call moves at most, so that the other side can begin with it meanwhile. Even for every element.
inline constexpr std::size_t kShmPieceBytes = std::size_t{64} << 10;

class ShmWriter : public OutgoingLink {
 public:
  explicit ShmWriter(ShmSegment segment) : segment_(std::move(segment)) {}
  LinkKind kind() const override { return LinkKind::kSharedMemory; }
  std::uint64_t moved() const override { return written_; }
  bool ready() const override;
  bool start_sleep() override;
  pollfd sleep_on() const override { return {segment_.emptied(), POLLIN, 0}; }
  void end_sleep(bool woken) override;
  base::Result<std::size_t> write(std::span<const iovec> pieces) override;

 private:
  void copy_in(const void* from, std::size_t bytes, std::uint64_t at);

  ShmSegment segment_;
  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;  // as last seen: looked up again only when the ring seems full
};

class ShmReader : public IncomingLink {
 public:
  explicit ShmReader(ShmSegment segment) : segment_(std::move(segment)) {}
  LinkKind kind() const override { return LinkKind::kSharedMemory; }
  std::uint64_t moved() const override { return read_; }
  bool ready() const override;
  bool start_sleep() override;
  pollfd sleep_on() const override { return {segment_.filled(), POLLIN, 0}; }
  void end_sleep(bool woken) override;
  base::Result<std::size_t> read(std::span<const iovec> pieces) override;
  base::Result<std::span<const std::byte>> look() override;
  void drop(std::size_t bytes) override;

 private:
  base::Result<std::size_t> available() const;

  ShmSegment segment_;
  std::uint64_t read_ = 0;
};

}  // namespace evenkeel::trainer
