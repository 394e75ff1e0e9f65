// Walks over the members of a tar archive (ustar, with pax and GNU long names) without reading their data.
// Pure but for the file that is read; called by webdataset_split.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trainer/data/file_window.h"

namespace evenkeel::trainer {

inline constexpr std::uint64_t kTarBlock = 512;

enum class TarKind { kFile, kDirectory, kLink, kOther };

struct TarMember {
  std::string name;  // the whole path
  TarKind kind = TarKind::kFile;
  std::uint64_t header_offset = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t size = 0;
};

// Where and why an archive ends before its end.
struct TarFault {
  std::uint64_t offset = 0;
  std::string member;  // that is cut short; empty: none had begun
  std::string cause;
};

// Calls on_member for each member in order, the data of which is there as a whole. A status from it ends the
// walk. No members at all, or no byte at all, is no error.
// on_fault: the archive is cut short; members before were reported.
// Error kCorruptData: a damaged header, so that nothing behind it can be found; `path` is for messages.
base::Status walk_tar(FileWindow& file, const std::string& path,
                      const std::function<base::Status(const TarMember&)>& on_member,
                      const std::function<void(const TarFault&)>& on_fault);

}  // namespace evenkeel::trainer
