// The only place that knows zlib.
#include "trainer/data/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::size_t kPiece = std::size_t{1} << 20;

Error too_much_follows(const std::string& file, std::size_t at) {
  return {ErrorCode::kCorruptData, file + ": at compressed byte " + std::to_string(at) +
                                       ": bytes behind the gzip stream; fetch the file again"};
}

}  // namespace

struct Inflater::State {
  std::string_view bytes;
  std::string file;
  z_stream stream{};
  std::size_t at = 0;
  bool ready = false;
  bool ended = false;
};

Inflater::Inflater(std::string_view bytes, std::string file) : state_(std::make_unique<State>()) {
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  state_->bytes = bytes;
  state_->file = std::move(file);
  state_->ready = inflateInit2(&state_->stream, kGzipOnly) == Z_OK;
}

Inflater::~Inflater() {
  if (state_->ready) inflateEnd(&state_->stream);
}

bool Inflater::ended() const {
  return state_->ended;
}

std::size_t Inflater::consumed() const {
  return state_->at;
}

base::Status Inflater::take(std::uint64_t count, std::string& out) {
  if (!state_->ready) return Error{ErrorCode::kInternal, state_->file + ": zlib cannot start"};
  while (count > 0 && !state_->ended) {
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

Result<std::size_t> Inflater::inflate_into(char* target, std::size_t size) {
  State& s = *state_;
  s.stream.next_out = reinterpret_cast<Bytef*>(target);
  s.stream.avail_out = static_cast<uInt>(size);
  while (s.stream.avail_out > 0 && !s.ended) {
    const std::size_t left = std::min(s.bytes.size() - s.at, kPiece);
    s.stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(s.bytes.data() + s.at));  // zlib reads only
    s.stream.avail_in = static_cast<uInt>(left);
    const int code = inflate(&s.stream, Z_NO_FLUSH);
    s.at += left - s.stream.avail_in;
    // A file may hold several streams, as parallel compressors and `cat a.gz b.gz` make them.
    const bool another = s.bytes.substr(s.at, 2) == "\x1f\x8b";
    s.ended = code == Z_STREAM_END && !(another && inflateReset(&s.stream) == Z_OK);
    if (code == Z_OK || code == Z_STREAM_END) continue;
    return failure(code);
  }
  return size - s.stream.avail_out;
}

Error Inflater::failure(int code) const {
  const char* said = state_->stream.msg;
  const std::string cause = code == Z_BUF_ERROR ? "truncated gzip stream"
                                                : std::string("damaged gzip stream (") +
                                                      (said != nullptr ? said : "zlib says no") + ")";
  return Error{ErrorCode::kCorruptData, state_->file + ": at compressed byte " + std::to_string(state_->at) + ": " +
                                            cause + "; fetch the file again"};
}

Result<std::string> gunzip(std::string_view bytes, const std::string& file, std::uint64_t max_bytes) {
  Inflater inflater(bytes, file);
  std::string content;
  EVENKEEL_TRY(inflater.take(max_bytes, content));
  std::string more;
  if (!inflater.ended()) EVENKEEL_TRY(inflater.take(1, more));
  if (!more.empty()) {
    return Error{ErrorCode::kUnsupported, file + " has more than " + std::to_string(max_bytes) +
                                              " bytes when it is decompressed: make smaller files, or decompress it"};
  }
  if (inflater.consumed() != bytes.size()) return too_much_follows(file, inflater.consumed());
  return content;
}

}  // namespace evenkeel::trainer
