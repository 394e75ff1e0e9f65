// What the two halves of the IDX reader share (idx_parse.cpp, idx_gunzip.cpp). Nobody else includes this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace evenkeel::trainer::idx_internal {

// The longest header: magic and three dimensions.
inline constexpr std::size_t kMaxHeaderBytes = 16;

// Size of the whole content according to its first bytes (up to kMaxHeaderBytes).
base::Result<std::uint64_t> announced_bytes(std::string_view head, const std::string& file,
                                            std::uint64_t max_bytes);

}  // namespace evenkeel::trainer::idx_internal
