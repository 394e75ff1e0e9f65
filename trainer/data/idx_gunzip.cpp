// The only place that knows zlib. Output grows to what the content's own header announces and not further, so
// a small file cannot claim the machine's memory; gzip's CRC and length are checked by zlib at the end of the
// stream.
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "trainer/data/idx_internal.h"
#include "trainer/data/idx_reader.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

class Inflater {
 public:
  Inflater(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends up to `count` more bytes to `out`; fewer only at the end of the stream.
  base::Status take(std::uint64_t count, std::string& out) {
    if (!ready_) return Error{ErrorCode::kInternal, file_ + ": zlib cannot start"};
    while (count > 0 && !ended_) {
      const std::size_t before = out.size();
      const std::size_t piece = static_cast<std::size_t>(std::min<std::uint64_t>(count, kPiece));
      out.resize(before + piece);
      const Result<std::size_t> written = inflate_into(out.data() + before, piece);
      if (!written.ok()) return written.error();
      out.resize(before + *written);
      count -= *written;
    }
    return {};
  }

  bool ended() const { return ended_; }
  std::size_t consumed() const { return at_; }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;

  Result<std::size_t> inflate_into(char* target, std::size_t size) {
    stream_.next_out = reinterpret_cast<Bytef*>(target);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out > 0 && !ended_) {
      const std::size_t left = std::min(bytes_.size() - at_, kPiece);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + at_));  // zlib reads only
      stream_.avail_in = static_cast<uInt>(left);
      const int code = inflate(&stream_, Z_NO_FLUSH);
      at_ += left - stream_.avail_in;
      ended_ = code == Z_STREAM_END;
      if (code == Z_OK || ended_) continue;
      return failure(code);
    }
    return size - stream_.avail_out;
  }

  Error failure(int code) const {
    const bool truncated = code == Z_BUF_ERROR;
    const std::string cause = truncated ? "truncated gzip stream"
                                        : std::string("damaged gzip stream (") +
                                              (stream_.msg != nullptr ? stream_.msg : "zlib says no") + ")";
    return Error{ErrorCode::kCorruptData, file_ + ": at compressed byte " + std::to_string(at_) + ": " +
                                              cause + "; fetch the file again"};
  }

  std::string_view bytes_;
  std::string file_;
  z_stream stream_{};
  std::size_t at_ = 0;
  bool ready_ = false;
  bool ended_ = false;
};

}  // namespace

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
