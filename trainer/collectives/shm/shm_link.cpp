#include "trainer/collectives/shm/shm_link.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

Error out_of_range(const char* which, std::uint64_t distance, std::size_t capacity) {
  return {ErrorCode::kCorruptData, std::string("shared memory: the neighbour's ") + which + " index is " +
                                       std::to_string(distance) + " bytes away in a ring of " +
                                       std::to_string(capacity)};
}

// Whoever sleeps is woken once: the flag goes before the bell, so that a sleeper that has come back meanwhile
// and sets it again finds the bell ringing.
void wake(std::atomic<std::uint32_t>& sleeps, int bell) {
  if (sleeps.load() == 0) return;
  sleeps.store(0);
  ring_bell(bell);
}

}  // namespace

bool ShmWriter::ready() const {
  return written_ - segment_.ring().read.load() != segment_.capacity();  // out of range: write() says so
}

bool ShmWriter::start_sleep() {
  segment_.ring().writer_sleeps.store(1);
  if (!ready()) return true;
  end_sleep(false);
  return false;
}

void ShmWriter::end_sleep(bool woken) {
  segment_.ring().writer_sleeps.store(0, std::memory_order_relaxed);
  if (woken) silence_bell(segment_.emptied());
}

void ShmWriter::copy_in(const void* from, std::size_t bytes, std::uint64_t at) {
  const std::size_t place = static_cast<std::size_t>(at) & (segment_.capacity() - 1);
  const std::size_t first = std::min(bytes, segment_.capacity() - place);
  std::memcpy(segment_.data() + place, from, first);
  std::memcpy(segment_.data(), static_cast<const std::byte*>(from) + first, bytes - first);
}

Result<std::size_t> ShmWriter::write(std::span<const iovec> pieces) {
  const std::size_t capacity = segment_.capacity();
  const std::size_t most = std::min(kShmPieceBytes, capacity);
  if (capacity - static_cast<std::size_t>(written_ - read_) < most) {
    const std::uint64_t read = segment_.ring().read.load(std::memory_order_acquire);
    if (written_ - read > capacity) return out_of_range("reading", written_ - read, capacity);
    read_ = read;
  }
  const std::size_t room = std::min(capacity - static_cast<std::size_t>(written_ - read_), most);
  std::size_t done = 0;
  for (const iovec& piece : pieces) {
    const std::size_t bytes = std::min(piece.iov_len, room - done);
    copy_in(piece.iov_base, bytes, written_ + done);
    done += bytes;
  }
  if (done == 0) return done;
  written_ += done;
  segment_.ring().written.store(written_);
  wake(segment_.ring().reader_sleeps, segment_.filled());
  return done;
}

bool ShmReader::ready() const {
  return segment_.ring().written.load() != read_;  // out of range: read() says so
}

bool ShmReader::start_sleep() {
  segment_.ring().reader_sleeps.store(1);
  if (!ready()) return true;
  end_sleep(false);
  return false;
}

void ShmReader::end_sleep(bool woken) {
  segment_.ring().reader_sleeps.store(0, std::memory_order_relaxed);
  if (woken) silence_bell(segment_.filled());
}

Result<std::size_t> ShmReader::available() const {
  const std::uint64_t distance = segment_.ring().written.load(std::memory_order_acquire) - read_;
  if (distance > segment_.capacity()) return out_of_range("writing", distance, segment_.capacity());
  return static_cast<std::size_t>(distance);
}

Result<std::span<const std::byte>> ShmReader::look() {
  EVENKEEL_ASSIGN(const std::size_t bytes, available());
  const std::size_t place = static_cast<std::size_t>(read_) & (segment_.capacity() - 1);
  return std::span<const std::byte>(
      segment_.data() + place, std::min({bytes, segment_.capacity() - place, kShmPieceBytes}));
}

Result<std::size_t> ShmReader::read(std::span<const iovec> pieces) {
  EVENKEEL_ASSIGN(std::size_t left, available());
  left = std::min(left, kShmPieceBytes);
  std::size_t done = 0;
  for (const iovec& piece : pieces) {
    const std::size_t bytes = std::min(piece.iov_len, left - done);
    const std::size_t place = static_cast<std::size_t>(read_ + done) & (segment_.capacity() - 1);
    const std::size_t first = std::min(bytes, segment_.capacity() - place);
    std::memcpy(piece.iov_base, segment_.data() + place, first);
    std::memcpy(static_cast<std::byte*>(piece.iov_base) + first, segment_.data(), bytes - first);
    done += bytes;
  }
  if (done > 0) drop(done);
  return done;
}

void ShmReader::drop(std::size_t bytes) {
  read_ += bytes;
  segment_.ring().read.store(read_);
  wake(segment_.ring().writer_sleeps, segment_.emptied());
}

}  // namespace evenkeel::trainer
