// Output grows to what the content's own header announces and not further, so a small file cannot claim the machine's
// memory.
#include "trainer/data/gunzip.h"
#include "trainer/data/idx_internal.h"
#include "trainer/data/idx_reader.h"

namespace evenkeel::trainer {

using base::Error;
using base::ErrorCode;
using base::Result;

Result<std::string> gunzip_idx(std::string_view bytes, const std::string& file, std::uint64_t max_bytes) {
  if (bytes.empty())
    return Error{ErrorCode::kCorruptData, file + ": at byte 0: the file is empty; fetch it again"};
  Inflater inflater(bytes, file);
  std::string content;
  EVENKEEL_TRY(inflater.take(idx_internal::kMaxHeaderBytes, content));
  EVENKEEL_ASSIGN(const std::uint64_t announced, idx_internal::announced_bytes(content, file, max_bytes));
  // One byte more than announced, so that a longer content is seen as such by the parser.
  if (announced + 1 > content.size()) EVENKEEL_TRY(inflater.take(announced + 1 - content.size(), content));
  if (inflater.ended() && inflater.consumed() != bytes.size()) {
    return Error{ErrorCode::kCorruptData, file + ": at compressed byte " +
                                              std::to_string(inflater.consumed()) +
                                              ": bytes behind the gzip stream; fetch the file again"};
  }
  return content;
}

}  // namespace evenkeel::trainer
