#include "trainer/backend/cpu/arena_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace evenkeel::trainer {

void ArenaMemory::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

base::Result<ArenaMemory> ArenaMemory::allocate(std::uint64_t bytes, const std::string& name) {
  ArenaMemory arena;
  if (bytes == 0) return arena;
  constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
  constexpr std::uint64_t kLine = 64;
  const bool huge = bytes >= kHugePage;
  const std::uint64_t alignment = huge ? kHugePage : kLine;
  const std::uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (memory == nullptr) {
    return base::Error{base::ErrorCode::kInvalidInput, "no memory for the arena " + name + ": " +
                                                           std::to_string(rounded) +
                                                           " bytes; make the batch or the model smaller"};
  }
  if (huge) madvise(memory, rounded, MADV_HUGEPAGE);  // advice only: it may be off, and that is fine
  std::memset(memory, 0, rounded);
  arena.memory_.reset(memory);
  arena.size_ = bytes;
  return arena;
}

}  // namespace evenkeel::trainer
