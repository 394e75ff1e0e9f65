// A server that does to each connection what a test says, byte by byte: for hostile answers. Listens on
// 127.0.0.1, any free port. Tests only.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace evenkeel::oper {

class RawConnection {
 public:
  RawConnection(int fd, const std::atomic<bool>& stopping) : fd_(fd), stopping_(stopping) {}

  // The head of one request, and as much of its body as came with it; "" when the client is gone.
  std::string read_request() {
    std::string text;
    while (text.find("\r\n\r\n") == std::string::npos) {
      if (!wait(POLLIN)) return "";
      char buffer[4096];
      const ssize_t count = recv(fd_, buffer, sizeof buffer, 0);
      if (count <= 0) return "";
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }
  // False when the client is gone or the server stops.
  bool write(const std::string& text) {
    std::size_t done = 0;
    while (done < text.size()) {
      if (!wait(POLLOUT)) return false;
      const ssize_t count = send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count <= 0) return false;
      done += static_cast<std::size_t>(count);
    }
    return true;
  }
  // Until the client closes or the server stops.
  void hold() {
    char buffer[256];
    while (wait(POLLIN) && recv(fd_, buffer, sizeof buffer, 0) > 0) {
    }
  }
  void pause(std::chrono::milliseconds time) const { std::this_thread::sleep_for(time); }
  void reset() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }

 private:
  bool wait(short what) const {
    while (!stopping_) {
      pollfd one{fd_, what, 0};
      if (poll(&one, 1, 20) > 0) return (one.revents & what) != 0;
    }
    return false;
  }
  int fd_;
  const std::atomic<bool>& stopping_;
};

class RawServer {
 public:
  using Handler = std::function<void(RawConnection&)>;
  explicit RawServer(Handler handler)
      : handler_(std::move(handler)), fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd_, 16) != 0)
      std::abort();
    socklen_t size = sizeof address;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~RawServer() {
    stopping_ = true;
    thread_.join();
    for (std::thread& one : connections_) one.join();
    close(fd_);
  }
  std::uint16_t port() const { return port_; }
  int accepted() const { return accepted_; }

 private:
  void accept_all() {
    while (!stopping_) {
      pollfd one{fd_, POLLIN, 0};
      if (poll(&one, 1, 20) <= 0) continue;
      const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      ++accepted_;
      connections_.emplace_back([this, fd] {
        RawConnection connection(fd, stopping_);
        handler_(connection);
        close(fd);
      });
    }
  }
  Handler handler_;
  int fd_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> accepted_{0};
  std::thread thread_;
  std::vector<std::thread> connections_;
};

}  // namespace evenkeel::oper
