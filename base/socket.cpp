#include "base/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace evenkeel::base {
namespace {

// A peer that vanished without a word (power, network) is noticed after half a minute, also by a silent
// socket.
constexpr int kKeepAliveIdleS = 15;
constexpr int kKeepAliveIntervalS = 5;
constexpr int kKeepAliveProbes = 3;

std::string reason(int error) {
  return std::generic_category().message(error);
}

struct Endpoint {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

std::string text_of(const Endpoint& endpoint) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (endpoint.family() == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(endpoint.storage);
    inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
    return std::string(text.data()) + ":" + std::to_string(ntohs(in.sin_port));
  }
  if (endpoint.family() == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(endpoint.storage);
    inet_ntop(AF_INET6, &in.sin6_addr, text.data(), text.size());
    return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(in.sin6_port));
  }
  return "local";
}

std::uint16_t port_of(const Endpoint& endpoint) {
  if (endpoint.family() == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(endpoint.storage).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(endpoint.storage).sin_port);
}

void set_port(Endpoint& endpoint, std::uint16_t port) {
  if (endpoint.family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(endpoint.storage).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(endpoint.storage).sin_port = htons(port);
  }
}

// `which` is getpeername or getsockname.
template <class Which>
Endpoint endpoint_of(int fd, Which which) {
  Endpoint endpoint;
  endpoint.length = sizeof endpoint.storage;
  if (which(fd, endpoint.get(), &endpoint.length) != 0) endpoint.length = 0;
  return endpoint;
}

// Until `fd` is ready for `events` (or broken: the next call on it says how). The waker wins over readiness,
// and a passed deadline too: a peer that drips one byte a second must not keep a caller past its time.
Status wait_for(int fd, short events, MonotonicTime deadline, const Waker* waker) {
  std::array<pollfd, 2> polled{pollfd{fd, events, 0}, pollfd{waker != nullptr ? waker->fd() : -1, POLLIN, 0}};
  while (true) {
    const MonotonicTime now = real_clock().now();
    // Cut to an hour: "for ever" as a deadline would overflow.
    const Duration left =
        now >= deadline ? Duration(0) : std::min<Duration>(deadline - now, std::chrono::hours(1));
    timespec timeout{};
    timeout.tv_sec = left.count() / 1'000'000'000;
    timeout.tv_nsec = left.count() % 1'000'000'000;
    const int ready = ppoll(polled.data(), polled.size(), &timeout, nullptr);
    if (ready < 0 && errno != EINTR) return Error{ErrorCode::kInternal, "poll: " + reason(errno)};
    if (ready > 0 && polled[1].revents != 0) return Error{ErrorCode::kAborted, "stopped on purpose"};
    if (now >= deadline) return Error{ErrorCode::kDeadlineExceeded, "no answer in the time given"};
    if (ready > 0 && polled[0].revents != 0) return {};
  }
}

bool is_transient(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

void set_option(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

// Best effort: a socket without these options still works, only slower.
void tune_connection(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleS);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalS);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
}

// What getaddrinfo found, IPv4 first, or why not.
struct Lookup {
  std::vector<Endpoint> endpoints;
  int error = 0;
};

Lookup look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  Lookup lookup;
  lookup.error = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    if (info->ai_family != AF_INET && info->ai_family != AF_INET6) continue;
    Endpoint endpoint;
    std::memcpy(&endpoint.storage, info->ai_addr, info->ai_addrlen);
    endpoint.length = info->ai_addrlen;
    lookup.endpoints.push_back(endpoint);
  }
  if (list != nullptr) freeaddrinfo(list);
  std::stable_partition(lookup.endpoints.begin(), lookup.endpoints.end(),
                        [](const Endpoint& e) { return e.family() == AF_INET; });
  return lookup;
}

// The system's resolver knows no deadline, so names are looked up by a thread of their own, which is left
// behind when the time is over: it ends by itself when the resolver gives up, and what it touches is shared
// with it.
Result<std::vector<Endpoint>> resolve(const Address& address, MonotonicTime deadline, const Waker* waker) {
  Lookup lookup = look_up(address.host, AI_NUMERICHOST);
  if (lookup.error == EAI_NONAME) {
    struct Shared {
      Lookup lookup;
      Waker done;
    };
    auto shared = std::make_shared<Shared>();
    std::thread([shared, host = address.host] {
      shared->lookup = look_up(host, 0);
      shared->done.wake();
    }).detach();
    const Status status = wait_for(shared->done.fd(), POLLIN, deadline, waker);
    if (!status.ok()) return with_context("looking up \"" + address.host + "\"", status.error());
    lookup = std::move(shared->lookup);
  }
  if (lookup.error != 0 || lookup.endpoints.empty()) {
    const char* why = lookup.error != 0 ? gai_strerror(lookup.error) : "no address";
    return Error{ErrorCode::kUnavailable, "looking up \"" + address.host + "\": " + why};
  }
  for (Endpoint& endpoint : lookup.endpoints) set_port(endpoint, address.port);
  return std::move(lookup.endpoints);
}

Result<Socket> connect_one(const Endpoint& endpoint, MonotonicTime deadline, const Waker* waker) {
  Socket pending(socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!pending.open()) return Error{ErrorCode::kUnavailable, "no socket: " + reason(errno)};
  int error = connect(pending.fd(), endpoint.get(), endpoint.length) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EINTR) {
    EVENKEEL_TRY(wait_for(pending.fd(), POLLOUT, deadline, waker));
    socklen_t size = sizeof error;
    if (getsockopt(pending.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  }
  if (error != 0) return Error{ErrorCode::kUnavailable, reason(error)};
  // Where nobody listens on a port that the system also hands out, a socket may meet itself.
  if (text_of(endpoint_of(pending.fd(), getpeername)) == text_of(endpoint_of(pending.fd(), getsockname))) {
    return Error{ErrorCode::kUnavailable, reason(ECONNREFUSED)};
  }
  tune_connection(pending.fd());
  return Socket(pending.release());
}

Error bind_error(const std::string& where, int error) {
  switch (error) {
    case EADDRINUSE:
      return {ErrorCode::kAlreadyExists, "cannot listen on " + where +
                                             ": the port is taken by another program; " +
                                             "stop that program or choose another port"};
    case EADDRNOTAVAIL:
      return {ErrorCode::kInvalidInput,
              "cannot listen on " + where + ": this machine does not have that address"};
    case EACCES:
      return {ErrorCode::kPermissionDenied,
              "cannot listen on " + where + ": " + reason(error) + "; choose a port from 1024 up"};
    default:
      return {ErrorCode::kUnavailable, "cannot listen on " + where + ": " + reason(error)};
  }
}

Error transfer_error(const char* doing, const Socket& socket, std::size_t done, std::size_t total,
                     Error error) {
  error.message = std::string(doing) + " " + socket.peer() + ", " + std::to_string(done) + " of " +
                  std::to_string(total) + " bytes done: " + error.message;
  return error;
}

// `step` moves some bytes and returns as recv and send do. Zero bytes moved means that the other side has
// closed.
template <class Step>
Status transfer(const char* doing, const Socket& socket, std::size_t total, short events,
                MonotonicTime deadline, const Waker* waker, Step step) {
  std::size_t done = 0;
  const auto failed = [&](Error error) {
    return transfer_error(doing, socket, done, total, std::move(error));
  };
  if (!socket.open()) return failed({ErrorCode::kUnavailable, "the connection is closed on this side"});
  while (done < total) {
    Status status = wait_for(socket.fd(), events, deadline, waker);
    if (!status.ok()) return failed(std::move(status).error());
    const ssize_t moved = step(done);
    if (moved < 0 && is_transient(errno)) continue;
    if (moved < 0) return failed({ErrorCode::kUnavailable, reason(errno)});
    if (moved == 0) return failed({ErrorCode::kUnavailable, "the other side closed the connection"});
    done += static_cast<std::size_t>(moved);
  }
  return {};
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  const auto refused = [&](const char* why) {
    return Error{ErrorCode::kInvalidInput, "\"" + std::string(text.substr(0, 80)) + "\" is not an address: " +
                                               why + "; write it as host:port, for example 10.0.0.7:9400"};
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refused("there is no port");
  const std::string_view host = text.substr(0, colon), port_text = text.substr(colon + 1);
  if (host.empty()) return refused("there is no host");
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
  };
  if (host.size() > 253 || !std::all_of(host.begin(), host.end(), is_name)) return refused("bad host");
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (error != std::errc() || end != port_text.data() + port_text.size())
    return refused("a port is a number to 65535");
  return Address{std::string(host), port};
}

Waker::Waker() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ >= 0) return;
  // poll would ignore a missing descriptor, and nothing could ever be stopped again.
  std::perror("eventfd");
  std::abort();
}

Waker::~Waker() {
  ::close(fd_);
}

void Waker::wake() {
  const std::uint64_t one = 1;
  // A full counter is awake already.
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
}

void Waker::reset() {
  std::uint64_t count;
  [[maybe_unused]] const ssize_t got = ::read(fd_, &count, sizeof count);
}

Socket::Socket(int fd) : fd_(fd) {
  const Endpoint endpoint = fd >= 0 ? endpoint_of(fd, getpeername) : Endpoint{};
  if (endpoint.length > 0) peer_ = text_of(endpoint);
}

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)), peer_(std::move(other.peer_)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::exchange(other.fd_, -1);
  peer_ = std::move(other.peer_);
  return *this;
}

Socket::~Socket() {
  close();
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

int Socket::release() {
  return std::exchange(fd_, -1);
}

std::string Socket::peer() const {
  return peer_.empty() ? "a peer without address" : peer_;
}

Status Socket::send_all(std::span<const std::byte> bytes, MonotonicTime deadline, const Waker* waker) {
  return transfer("sending to", *this, bytes.size(), POLLOUT, deadline, waker, [&](std::size_t done) {
    return ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

Status Socket::receive_all(std::span<std::byte> bytes, MonotonicTime deadline, const Waker* waker) {
  return transfer("receiving from", *this, bytes.size(), POLLIN, deadline, waker, [&](std::size_t done) {
    return ::recv(fd_, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT);
  });
}

Result<std::size_t> Socket::receive_some(std::span<std::byte> bytes, MonotonicTime deadline,
                                         const Waker* waker) {
  const auto failed = [&](Error error) {
    return transfer_error("receiving from", *this, 0, bytes.size(), std::move(error));
  };
  if (!open()) return failed({ErrorCode::kUnavailable, "the connection is closed on this side"});
  while (true) {
    Status status = wait_for(fd_, POLLIN, deadline, waker);
    if (!status.ok()) return failed(std::move(status).error());
    const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (!is_transient(errno)) return failed({ErrorCode::kUnavailable, reason(errno)});
  }
}

Result<Listener> Listener::open(const Address& address, int backlog) {
  // A listener's address is numeric or in /etc/hosts; ten seconds are for a resolver that is asked all the
  // same.
  auto endpoints = resolve(address, real_clock().now() + std::chrono::seconds(10), nullptr);
  if (!endpoints.ok()) return with_context("cannot listen on " + address.text(), endpoints.error());
  const Endpoint& endpoint = endpoints->front();
  Listener listener;
  listener.socket_ = Socket(socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.socket_.open()) return bind_error(address.text(), errno);
  // A restarted program gets its port back at once; a port that is listened on stays refused.
  set_option(listener.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(listener.fd(), endpoint.get(), endpoint.length) != 0) return bind_error(address.text(), errno);
  if (listen(listener.fd(), backlog) != 0) return bind_error(address.text(), errno);
  listener.port_ = port_of(endpoint_of(listener.fd(), getsockname));
  return listener;
}

Result<Socket> Listener::accept(MonotonicTime deadline, const Waker* waker) {
  if (!socket_.open()) return Error{ErrorCode::kUnavailable, "accepting: the listener is closed"};
  while (true) {
    // First a look, so that a deadline that has passed means "what waits already, or nothing".
    const int accepted = accept4(fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted >= 0) {
      tune_connection(accepted);
      return Socket(accepted);
    }
    // ECONNABORTED, EPROTO: the other side was gone before we came, which is no reason to stop listening.
    if (!is_transient(errno) && errno != ECONNABORTED && errno != EPROTO) {
      return Error{ErrorCode::kUnavailable,
                   "accepting on port " + std::to_string(port_) + ": " + reason(errno)};
    }
    Status status = wait_for(fd(), POLLIN, deadline, waker);
    if (!status.ok()) {
      return with_context("accepting on port " + std::to_string(port_), std::move(status).error());
    }
  }
}

Result<Socket> connect_to(const Address& address, MonotonicTime deadline, const Waker* waker) {
  const std::string context = "connecting to " + address.text();
  auto endpoints = resolve(address, deadline, waker);
  if (!endpoints.ok()) return with_context(context, endpoints.error());
  Error last{ErrorCode::kUnavailable, "no address"};
  for (std::size_t i = 0; i < endpoints->size(); ++i) {
    // An address that does not answer leaves time for the next.
    const MonotonicTime now = real_clock().now();
    const bool is_last = i + 1 == endpoints->size();
    const MonotonicTime until = is_last || now >= deadline ? deadline : now + (deadline - now) / 2;
    auto connected = connect_one((*endpoints)[i], until, waker);
    if (connected.ok() || connected.error().code == ErrorCode::kAborted) {
      if (connected.ok()) return connected;
      return with_context(context, connected.error());
    }
    last = connected.error();
  }
  return with_context(context, last);
}

std::string own_address() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "127.0.0.1";
  std::string found = "127.0.0.1";
  for (const ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    const bool up = (item->ifa_flags & IFF_UP) != 0 && (item->ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || item->ifa_addr == nullptr || item->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(item->ifa_addr)->sin_addr, text.data(),
              text.size());
    found = text.data();
    break;
  }
  freeifaddrs(list);
  return found;
}

}  // namespace evenkeel::base
