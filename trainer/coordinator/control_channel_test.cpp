#include "trainer/coordinator/control_channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace evenkeel::trainer {
namespace {

using contract::MessageType;

base::Json note(const std::string& text) {
  base::Json json;
  json["note"] = text;
  return json;
}

TEST(FrameReader, frames_come_out_whatever_the_pieces) {
  std::string bytes;
  for (std::uint32_t i = 0; i < 5; ++i)
    bytes += encode_frame(MessageType::kHeartbeat, note(std::string(i * 7, 'x')), i);
  for (std::size_t piece = 1; piece <= 40; ++piece) {
    FrameReader reader(4096);
    std::size_t frames = 0;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.append(bytes.data() + at, std::min(piece, bytes.size() - at));
      for (;;) {
        auto frame = reader.next();
        ASSERT_TRUE(frame.ok()) << frame.error().message;
        if (!frame->has_value()) break;
        EXPECT_EQ(base::string_at((*frame)->payload, "note").size(), frames * 7);
        ++frames;
      }
    }
    EXPECT_EQ(frames, 5u);
  }
}

TEST(FrameReader, garbage_is_known_by_its_first_byte) {
  FrameReader reader(4096);
  reader.append("GET / HTTP/1.1", 1);
  EXPECT_FALSE(reader.next().ok());
}

TEST(FrameReader, a_length_over_the_limit_is_refused_before_the_payload_comes) {
  FrameReader reader(64);
  const std::string bytes = encode_frame(MessageType::kHello, note(std::string(100, 'x')), 0);
  reader.append(bytes.data(), contract::kControlHeaderBytes);
  const auto frame = reader.next();
  ASSERT_FALSE(frame.ok());
  EXPECT_EQ(frame.error().code, base::ErrorCode::kCorruptData);
}

TEST(FrameReader, a_flipped_bit_anywhere_is_noticed) {
  const std::string good = encode_frame(MessageType::kCommit, note("abc"), 0);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    FrameReader reader(4096);
    reader.append(bad.data(), bad.size());
    const auto frame = reader.next();
    EXPECT_TRUE(!frame.ok()) << "byte " << at;
  }
}

TEST(FrameReader, a_repeated_frame_is_refused) {
  FrameReader reader(4096);
  const std::string bytes = encode_frame(MessageType::kCommit, note("abc"), 0);
  reader.append(bytes.data(), bytes.size());
  reader.append(bytes.data(), bytes.size());
  ASSERT_TRUE(reader.next().ok());
  EXPECT_FALSE(reader.next().ok());
}

TEST(ControlChannel, a_full_pipe_keeps_the_rest_for_later) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  ControlChannel a{base::Socket(fds[0])}, b{base::Socket(fds[1])};
  b.trust_peer();
  int sent = 0;
  while (!a.has_pending()) {
    ASSERT_TRUE(a.send(MessageType::kCommit, note(std::string(10000, 'y'))).ok());
    ++sent;
  }
  int received = 0;
  while (received < sent) {
    ASSERT_TRUE(b.read_available().ok());
    ASSERT_TRUE(a.flush().ok());
    for (;;) {
      auto frame = b.next_frame();
      ASSERT_TRUE(frame.ok());
      if (!frame->has_value()) break;
      ++received;
    }
  }
  EXPECT_FALSE(a.has_pending());
  a.close();
  EXPECT_FALSE(b.read_available().ok());
}

}  // namespace
}  // namespace evenkeel::trainer
