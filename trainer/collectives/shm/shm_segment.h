// The memory of one link between two ranks of a machine, and its way from one to the other. A memfd: it has no
// name in any file system, so nothing is left behind by a kill, and the 64 MiB of a container's /dev/shm are no
// limit; sealed, so that no neighbour can take pages away from under us (that would be a SIGBUS). With it travel
// two eventfds, the bells. They are passed over a Unix socket, which only processes of one pod or host can do
// (one network namespace). Used by shm_link and ring_paths. Values; one thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/socket.h"

namespace evenkeel::trainer {

// Four pieces of kShmPieceBytes on their way, and it stays in a core's L2: 128 and 512 KiB were slower (bench
// collectives, 2 cores).
inline constexpr std::size_t kSharedMemoryBytes = std::size_t{256} << 10;
inline constexpr std::size_t kMinSharedMemoryBytes = 64;
inline constexpr std::size_t kMaxSharedMemoryBytes = std::size_t{64} << 20;
inline constexpr std::size_t kSegmentNonceBytes = 32;

// What a segment begins with; the ring of bytes follows a page further. Each number that changes has one writer
// and a cache line of its own, so that the two sides disturb each other only where one has news.
struct SharedRing {
  std::array<char, 8> magic;
  std::uint64_t capacity;  // bytes of the ring, a power of two
  std::array<char, kSegmentNonceBytes> nonce;
  alignas(64) std::atomic<std::uint64_t> written;  // bytes since the beginning; the writer's
  alignas(64) std::atomic<std::uint64_t> read;     // the same; the reader's
  alignas(64) std::atomic<std::uint32_t> reader_sleeps;  // set by the reader: ring `filled` after writing
  alignas(64) std::atomic<std::uint32_t> writer_sleeps;  // set by the writer: ring `emptied` after reading
};
inline constexpr std::size_t kSegmentDataOffset = 4096;
static_assert(sizeof(SharedRing) <= kSegmentDataOffset);
// A lock would be each process's own.
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

class ShmSegment {
 public:
  // Where it is made: by the rank that reads. kUnavailable with the system's reason (no memfd, no memory).
  static base::Result<ShmSegment> make(std::size_t capacity, const std::string& nonce);
  // Where it has arrived: everything is checked before it is used. kPermissionDenied: it is not the segment that
  // was announced.
  static base::Result<ShmSegment> open(base::Socket memory, base::Socket filled, base::Socket emptied,
                                       const std::string& nonce);
  ShmSegment(ShmSegment&& other) noexcept;
  ShmSegment& operator=(ShmSegment&& other) noexcept;
  ~ShmSegment();

  SharedRing& ring() const { return *reinterpret_cast<SharedRing*>(memory_); }
  std::byte* data() const { return memory_ + kSegmentDataOffset; }
  // Ours: the neighbour could change the one in memory.
  std::size_t capacity() const { return capacity_; }
  int filled() const { return filled_.fd(); }
  int emptied() const { return emptied_.fd(); }
  int descriptor() const { return descriptor_.fd(); }
  // The mapping stays.
  void close_descriptor() { descriptor_.close(); }

 private:
  ShmSegment() = default;
  base::Status map(std::size_t bytes);
  void unmap();

  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t capacity_ = 0;
  base::Socket descriptor_;  // only the ownership of a Socket is used, for the bells too
  base::Socket filled_;
  base::Socket emptied_;
};

void ring_bell(int bell);
void silence_bell(int bell);

// Where a rank receives descriptors: a datagram socket under a random abstract name.
class ShmMailbox {
 public:
  static base::Result<ShmMailbox> open();
  const std::string& name() const { return name_; }  // kMailboxNameBytes characters
  // The segment that carries this nonce and was posted before; other post is thrown away. Does not wait.
  base::Result<ShmSegment> take(const std::string& nonce);

 private:
  base::Socket socket_;
  std::string name_;
};
inline constexpr std::size_t kMailboxNameBytes = 32;

// kUnavailable: nobody of that name in this network namespace.
base::Status post(const ShmSegment& segment, const std::string& nonce, const std::string& mailbox);

}  // namespace evenkeel::trainer
