// The two ends of a link over TCP. They use the neighbour's socket and do not own it. Made by ring_paths, used by
// ring_exchange; one thread an end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "trainer/collectives/link.h"

namespace evenkeel::trainer {

class TcpWriter : public OutgoingLink {
 public:
  explicit TcpWriter(int socket) : socket_(socket) {}
  LinkKind kind() const override { return LinkKind::kTcp; }
  std::uint64_t moved() const override { return moved_; }
  bool ready() const override { return false; }
  bool start_sleep() override { return true; }
  pollfd sleep_on() const override { return {socket_, POLLOUT, 0}; }
  void end_sleep(bool) override {}
  base::Result<std::size_t> write(std::span<const iovec> pieces) override;

 private:
  int socket_;
  std::uint64_t moved_ = 0;
};

class TcpReader : public IncomingLink {
 public:
  explicit TcpReader(int socket) : socket_(socket) {}
  LinkKind kind() const override { return LinkKind::kTcp; }
  std::uint64_t moved() const override { return moved_; }
  bool ready() const override { return false; }
  bool start_sleep() override { return true; }
  pollfd sleep_on() const override { return {socket_, POLLIN, 0}; }
  void end_sleep(bool) override {}
  base::Result<std::size_t> read(std::span<const iovec> pieces) override;
  base::Result<std::span<const std::byte>> look() override { return std::span<const std::byte>(); }
  void drop(std::size_t) override {}

 private:
  int socket_;
  std::uint64_t moved_ = 0;
};

}  // namespace evenkeel::trainer
