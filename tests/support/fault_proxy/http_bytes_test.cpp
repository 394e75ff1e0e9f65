#include "tests/support/fault_proxy/http_bytes.h"

#include <gtest/gtest.h>

namespace evenkeel::support {
namespace {

// Feeds one byte after the other: the result may not depend on how the bytes come in.
std::string body_of(const std::string& message, bool is_request, std::string& rest) {
  std::string bytes, body;
  std::optional<HttpHead> head;
  std::optional<BodyReader> reader;
  for (const char c : message) {
    bytes += c;
    if (!head) {
      auto taken = take_head(bytes);
      if (!taken.ok()) return "error: " + taken.error().message;
      head = *taken;
      if (!head) continue;
      auto made = BodyReader::of(*head, is_request);
      if (!made.ok()) return "error: " + made.error().message;
      reader = *made;
    }
    auto piece = reader->take(bytes);
    if (!piece.ok()) return "error: " + piece.error().message;
    body += *piece;
  }
  rest = bytes;
  if (reader && !reader->done() && !reader->closed().ok()) return body + "|cut";
  return body;
}

TEST(HttpBytes, a_body_ends_by_length_by_chunks_or_with_the_connection) {
  struct Row {
    std::string message;
    bool is_request;
    std::string body, rest;
  };
  const std::string answer = "HTTP/1.1 200 OK\r\n";
  const std::vector<Row> rows = {
      {"POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET", true, "abc", "GET"},
      {"GET /x HTTP/1.1\r\nA: b\r\n\r\nGET", true, "", "GET"},
      {answer + "Content-Length: 0\r\n\r\n", false, "", ""},
      {answer + "transfer-encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: v\r\n\r\nHTTP", false,
       "abc0123456789", "HTTP"},
      {answer + "\r\nuntil the end", false, "until the end", ""},
      {answer + "Content-Length: 9\r\n\r\nabc", false, "abc|cut", ""},
      {answer + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false, "abc|cut", ""},
      {answer + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", false, "error: a chunk that is longer than its size", ""},
      {answer + "Transfer-Encoding: chunked\r\n\r\n-1\r\n", false, "error: a chunk's size '-1' is no number", ""},
      {answer + "Content-Length: x\r\n\r\n", false, "error: content-length 'x' is no number", ""},
      {"hello\r\n\r\n", false, "error: no HTTP/1: 'hello'", ""},
  };
  for (const Row& row : rows) {
    std::string rest;
    EXPECT_EQ(body_of(row.message, row.is_request, rest), row.body) << row.message;
    EXPECT_EQ(rest, row.rest) << row.message;
  }
}

TEST(HttpBytes, a_head_is_written_as_it_was_read) {
  const std::string text = "PATCH /a?b=c HTTP/1.1\r\nHost: x\r\nX-Y: 1:2\r\n\r\n";
  std::string bytes = text + "rest";
  const auto head = take_head(bytes);
  ASSERT_TRUE(head.ok() && head->has_value());
  EXPECT_EQ((*head)->text(), text);
  EXPECT_EQ((*head)->method(), "PATCH");
  EXPECT_EQ((*head)->target(), "/a?b=c");
  EXPECT_EQ((*head)->field("x-y"), "1:2");
  EXPECT_EQ(bytes, "rest");
}

TEST(HttpBytes, a_head_without_end_is_refused) {
  std::string bytes(70u << 10, 'x');
  EXPECT_FALSE(take_head(bytes).ok());
}

}  // namespace
}  // namespace evenkeel::support
