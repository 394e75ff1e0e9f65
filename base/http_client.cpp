#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/http.h"
#include "base/socket.h"

namespace evenkeel::base {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::size_t kMaxAnswerHeadBytes = 16 << 10;
constexpr std::size_t kReadBytes = 16 << 10;

bool is_plain(std::string_view path) {
  return !path.empty() && path[0] == '/' &&
         std::all_of(path.begin(), path.end(), [](char c) { return c > ' ' && c < 127; });
}

Error parse_error(const beast::error_code& error, std::size_t max_bytes) {
  if (error == http::error::body_limit) {
    return {ErrorCode::kInvalidInput, "the answer is longer than " + std::to_string(max_bytes) + " bytes"};
  }
  if (error == http::error::end_of_stream || error == http::error::partial_message) {
    return {ErrorCode::kUnavailable, "the connection was closed before the whole answer came"};
  }
  return {ErrorCode::kCorruptData, "not an HTTP answer: " + error.message()};
}

Result<HttpResponse> read_response(Socket& socket, MonotonicTime deadline, std::size_t max_bytes) {
  http::response_parser<http::string_body> parser;
  parser.header_limit(kMaxAnswerHeadBytes);
  parser.body_limit(max_bytes);
  parser.eager(true);
  beast::flat_buffer buffer;
  beast::error_code error;
  while (!parser.is_done()) {
    const auto space = buffer.prepare(kReadBytes);
    EVENKEEL_ASSIGN(
        const std::size_t got,
        socket.receive_some({static_cast<std::byte*>(space.data()), space.size()}, deadline, nullptr));
    buffer.commit(got);
    if (got == 0 && !parser.got_some()) return parse_error(http::error::end_of_stream, max_bytes);
    if (got == 0) {
      parser.put_eof(error);
    } else {
      buffer.consume(parser.put(buffer.data(), error));
    }
    if (error == http::error::need_more) error = {};
    // Judged here too: the library lets a body of known length pass its own limit.
    if (!error && parser.get().body().size() > max_bytes) error = http::error::body_limit;
    if (error) return parse_error(error, max_bytes);
    if (got == 0 && !parser.is_done()) return parse_error(http::error::partial_message, max_bytes);
  }
  auto message = parser.release();
  return HttpResponse{static_cast<int>(message.result_int()), std::string(message[http::field::content_type]),
                      std::move(message.body())};
}

}  // namespace

Result<HttpResponse> http_get(const std::string& host, std::uint16_t port, const std::string& path,
                              std::chrono::milliseconds timeout, std::size_t max_bytes) {
  const MonotonicTime deadline = real_clock().now() + timeout;
  const std::string context = "GET http://" + host + ":" + std::to_string(port) + path.substr(0, 200);
  if (!is_plain(path))
    return Error{ErrorCode::kInvalidInput, context + ": a path starts with / and has no spaces"};
  if (!is_plain("/" + host)) return Error{ErrorCode::kInvalidInput, context + ": bad host"};
  auto socket = connect_to({host, port}, deadline, nullptr);
  if (!socket.ok()) return with_context(context, socket.error());
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + host + ":" + std::to_string(port) +
                              "\r\nConnection: close\r\n\r\n";
  Status sent = socket->send_all(std::as_bytes(std::span(request)), deadline, nullptr);
  if (!sent.ok()) return with_context(context, sent.error());
  try {
    auto response = read_response(*socket, deadline, max_bytes);
    if (!response.ok()) return with_context(context, response.error());
    return response;
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kInternal, context + ": " + exception.what()};
  }
}

}  // namespace evenkeel::base
