// Decompresses gzip content that is in memory, piece by piece: a small file cannot claim the machine's memory, since
// whoever calls says how much is wanted. gzip's CRC and length are checked at the end of the stream. Used by the
// formats that come compressed; one thread each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace evenkeel::trainer {

class Inflater {
 public:
  // `bytes` must outlive it; `file` is for messages.
  Inflater(std::string_view bytes, std::string file);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends up to `count` more bytes to `out`; fewer only at the end of the stream. kCorruptData with the place in the
  // file.
  base::Status take(std::uint64_t count, std::string& out);
  bool ended() const;
  std::size_t consumed() const;  // of `bytes`

 private:
  struct State;
  base::Result<std::size_t> inflate_into(char* target, std::size_t size);
  base::Error failure(int code) const;

  std::unique_ptr<State> state_;
};

// All of it. kUnsupported above max_bytes; kCorruptData where anything follows the stream.
base::Result<std::string> gunzip(std::string_view bytes, const std::string& file, std::uint64_t max_bytes);

}  // namespace evenkeel::trainer
