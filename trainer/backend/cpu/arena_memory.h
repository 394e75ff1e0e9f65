// One arena's memory: aligned, zeroed, touched page by page when made, so that no step pays for it. Owned by
// the Engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace evenkeel::trainer {

class ArenaMemory {
 public:
  ArenaMemory() = default;
  // 0 bytes is fine: data() is null then. kInvalidInput with the size when the system has no memory.
  static base::Result<ArenaMemory> allocate(std::uint64_t bytes, const std::string& name);

  std::byte* data() const { return memory_.get(); }
  std::uint64_t size_bytes() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::uint64_t size_ = 0;
};

}  // namespace evenkeel::trainer
