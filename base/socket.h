// TCP sockets with deadlines: every wait ends, at the latest when its deadline passes or the wake is set.
// Used by the collectives and the coordinator. One thread a socket at a time; Waker::wake from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace evenkeel::base {

struct Address {
  std::string host;  // IPv4 text or a name
  std::uint16_t port = 0;
  std::string text() const { return host + ":" + std::to_string(port); }
};
Result<Address> parse_address(std::string_view text);

// An eventfd: wakes every poll that watches it, for good (until `reset`).
class Waker {
 public:
  Waker();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  void wake();
  void reset();
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  bool open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  void close();
  // Gives the descriptor away.
  int release();

  // All bytes or an error: kUnavailable (closed, reset), kDeadlineExceeded, kAborted (waker). `waker` may be
  // null.
  Status send_all(std::span<const std::byte> bytes, MonotonicTime deadline, const Waker* waker);
  Status receive_all(std::span<std::byte> bytes, MonotonicTime deadline, const Waker* waker);
  // What is there, at least one byte; 0: the other side has closed.
  Result<std::size_t> receive_some(std::span<std::byte> bytes, MonotonicTime deadline, const Waker* waker);
  // The other side's address, for messages.
  std::string peer() const;

 private:
  int fd_ = -1;
  std::string peer_;  // kept: after a reset the system no longer knows it
};

// Listens on one address; port 0 = any free one. Taken: kAlreadyExists with address and port.
class Listener {
 public:
  static Result<Listener> open(const Address& address, int backlog = 128);
  // The next connection. With a deadline that has passed: one that waits already, or kDeadlineExceeded at
  // once.
  Result<Socket> accept(MonotonicTime deadline, const Waker* waker);
  std::uint16_t port() const { return port_; }
  int fd() const { return socket_.fd(); }
  void close() { socket_.close(); }
  // Gives the descriptor away.
  int release() { return socket_.release(); }

 private:
  Socket socket_;
  std::uint16_t port_ = 0;
};

// Resolves and connects (TCP_NODELAY, keep-alive); a refused connection or an unknown name is kUnavailable:
// the caller retries.
Result<Socket> connect_to(const Address& address, MonotonicTime deadline, const Waker* waker);

// The IPv4 address of this machine's first non-loopback interface that is up, or 127.0.0.1.
std::string own_address();

}  // namespace evenkeel::base
