#include "operator/kube/line_framer.h"

#include <gtest/gtest.h>

#include <vector>

namespace evenkeel::oper {
namespace {

std::vector<std::string> drain(LineFramer& framer) {
  std::vector<std::string> lines;
  while (auto line = framer.next()) lines.push_back(*line);
  return lines;
}

TEST(LineFramer, gives_the_same_lines_at_every_split) {
  const std::string text = "{\"a\":\"\xc3\xa9\xe2\x82\xac\"}\r\n\n{\"b\":2}\n{\"c\":";
  const std::vector<std::string> expected{"{\"a\":\"\xc3\xa9\xe2\x82\xac\"}", "{\"b\":2}"};
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      LineFramer framer(1000);
      std::vector<std::string> lines;
      for (const std::string& piece :
           {text.substr(0, first), text.substr(first, second - first), text.substr(second)}) {
        framer.add(piece);
        for (std::string& line : drain(framer)) lines.push_back(std::move(line));
      }
      ASSERT_EQ(lines, expected) << first << " " << second;
      ASSERT_EQ(framer.buffered_bytes(), 5u);
    }
  }
}

TEST(LineFramer, gives_the_same_lines_byte_by_byte) {
  LineFramer framer(1000);
  std::vector<std::string> lines;
  for (const char c : std::string("one\ntwo\r\nthree")) {
    framer.add(std::string_view(&c, 1));
    for (std::string& line : drain(framer)) lines.push_back(std::move(line));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
}

TEST(LineFramer, an_unfinished_line_never_comes_out) {
  LineFramer framer(1000);
  framer.add("{\"type\":\"ADDED\"");
  EXPECT_FALSE(framer.next());
  EXPECT_FALSE(framer.overflowed());
}

TEST(LineFramer, a_line_over_the_cap_ends_the_stream_before_it_is_complete) {
  LineFramer framer(10);
  framer.add("0123456789\n");
  EXPECT_EQ(framer.next(), "0123456789");
  framer.add("01234567890");
  EXPECT_FALSE(framer.next());
  EXPECT_TRUE(framer.overflowed());
  framer.add("\nshort\n");
  EXPECT_FALSE(framer.next());
}

TEST(LineFramer, a_complete_line_over_the_cap_is_not_handed_out) {
  LineFramer framer(4);
  framer.add("12345\nok\n");
  EXPECT_FALSE(framer.next());
  EXPECT_TRUE(framer.overflowed());
}

TEST(LineFramer, a_line_of_megabytes_in_small_pieces_takes_linear_time) {
  LineFramer framer(4u << 20);
  const std::string piece(1024, 'x');
  for (int i = 0; i < 2048; ++i) {
    framer.add(piece);
    ASSERT_FALSE(framer.next());
  }
  framer.add("\n");
  EXPECT_EQ(framer.next()->size(), 2u << 20);
}

}  // namespace
}  // namespace evenkeel::oper
