#include "trainer/collectives/tcp/ring_connect.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <optional>
#include <span>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::size_t kNonceBytes = 32;
constexpr base::Duration kStrangerPatience = std::chrono::seconds(1);
constexpr base::Duration kRetryPause = std::chrono::milliseconds(50);
constexpr std::size_t kMaxCallers = 64;  // at once; more wait in the kernel's backlog

std::string rank_text(int rank) {
  return "rank " + std::to_string(rank);
}

int neighbour(const RingMember& member, int step) {
  const int size = static_cast<int>(member.peers.size());
  return (member.rank + step + size) % size;
}

// Sleeps, but not through an abort.
Status pause(base::MonotonicTime deadline, const base::Waker* waker) {
  const base::MonotonicTime until = std::min(deadline, base::real_clock().now() + kRetryPause);
  pollfd fd{waker != nullptr ? waker->fd() : -1, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - base::real_clock().now()).count();
  if (::poll(&fd, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0) {
    return Error{ErrorCode::kAborted, "aborted while connecting the ring"};
  }
  return {};
}

Result<base::Socket> call_next(const base::Address& address, base::MonotonicTime deadline,
                               const base::Waker* waker) {
  for (;;) {
    Result<base::Socket> socket = base::connect_to(address, deadline, waker);
    if (socket.ok() || socket.error().code != ErrorCode::kUnavailable) return socket;
    if (base::real_clock().now() >= deadline) return socket;
    EVENKEEL_TRY(pause(deadline, waker));
  }
}

// One that called and has not said its hello yet.
struct Caller {
  base::Socket socket;
  base::MonotonicTime deadline;
  std::array<std::byte, contract::kRingHelloBytes> hello{};
  std::size_t received = 0;
};

enum class Hearing { kMore, kComplete, kGone };

Hearing hear(Caller& caller) {
  const ssize_t bytes = ::recv(caller.socket.fd(), caller.hello.data() + caller.received,
                               caller.hello.size() - caller.received, MSG_DONTWAIT);
  if (bytes < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Hearing::kMore : Hearing::kGone;
  if (bytes == 0) return Hearing::kGone;
  caller.received += static_cast<std::size_t>(bytes);
  return caller.received == caller.hello.size() ? Hearing::kComplete : Hearing::kMore;
}

// Waits among all callers at once for the one that proves to be the previous rank; answers it.
class Door {
 public:
  Door(const RingMember& member, base::Listener& listener, base::MonotonicTime deadline,
       const base::Waker* waker)
      : member_(member), listener_(listener), deadline_(deadline), waker_(waker) {}

  Result<base::Socket> previous() {
    for (;;) {
      const base::MonotonicTime now = base::real_clock().now();
      if (now >= deadline_) {
        return Error{ErrorCode::kDeadlineExceeded,
                     rank_text(member_.name(neighbour(member_, -1))) + " (" +
                         member_.peers[static_cast<std::size_t>(neighbour(member_, -1))] +
                         ") did not connect to the ring in time"};
      }
      callers_.remove_if([&](const Caller& caller) { return caller.deadline <= now; });
      EVENKEEL_TRY(wait(now));
      for (auto caller = callers_.begin(); caller != callers_.end();) {
        const Hearing hearing = hear(*caller);
        if (hearing == Hearing::kComplete && is_previous(*caller)) return std::move(caller->socket);
        caller = hearing == Hearing::kMore ? std::next(caller) : callers_.erase(caller);
      }
    }
  }

 private:
  // Until somebody calls, says something or has been silent for too long.
  Status wait(base::MonotonicTime now) {
    base::MonotonicTime until = deadline_;
    std::vector<pollfd> fds{{callers_.size() < kMaxCallers ? listener_.fd() : -1, POLLIN, 0},
                            {waker_ != nullptr ? waker_->fd() : -1, POLLIN, 0}};
    for (const Caller& caller : callers_) {
      fds.push_back({caller.socket.fd(), POLLIN, 0});
      until = std::min(until, caller.deadline);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    (void)::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (fds[1].revents != 0) return Error{ErrorCode::kAborted, "aborted while connecting the ring"};
    if (fds[0].revents == 0) return {};
    Result<base::Socket> socket = listener_.accept(now + kStrangerPatience, waker_);
    if (!socket.ok()) return socket.error().code == ErrorCode::kAborted ? Status(socket.error()) : Status();
    callers_.push_back({std::move(*socket), base::real_clock().now() + kStrangerPatience, {}, 0});
    return {};
  }

  // Strangers, ranks of another fence and ranks that took us for another are let go without a word.
  bool is_previous(Caller& caller) {
    const Result<contract::RingHello> hello = contract::decode_ring_hello(caller.hello, member_.key, "");
    if (!hello.ok() || hello->fence != member_.fence) return false;
    if (hello->from != static_cast<std::uint32_t>(neighbour(member_, -1))) return false;
    if (hello->to != static_cast<std::uint32_t>(member_.rank)) return false;
    const contract::RingHello answer{hello->to, hello->from, member_.fence, base::random_bytes(kNonceBytes)};
    const auto bytes = contract::encode_ring_hello(answer, member_.key, hello->nonce);
    return caller.socket.send_all(bytes, deadline_, waker_).ok();
  }

  const RingMember& member_;
  base::Listener& listener_;
  const base::MonotonicTime deadline_;
  const base::Waker* waker_;
  std::list<Caller> callers_;
};

Status check_answer(base::Socket& socket, const RingMember& member, int next, const std::string& nonce,
                    base::MonotonicTime deadline, const base::Waker* waker) {
  std::array<std::byte, contract::kRingHelloBytes> bytes{};
  EVENKEEL_TRY(socket.receive_all(bytes, deadline, waker));
  EVENKEEL_ASSIGN(const contract::RingHello answer, contract::decode_ring_hello(bytes, member.key, nonce));
  if (answer.fence == member.fence && answer.from == static_cast<std::uint32_t>(next) &&
      answer.to == static_cast<std::uint32_t>(member.rank)) {
    return {};
  }
  return Error{ErrorCode::kMismatch, "the answer came from position " + std::to_string(answer.from) + " of " +
                                         contract::fence_text(answer.fence) + ", expected " +
                                         "position " + std::to_string(next) + " of " + contract::fence_text(member.fence)};
}

}  // namespace

Result<RingLinks> connect_ring(const RingMember& member, base::Listener& listener,
                               base::MonotonicTime deadline, const base::Waker* waker) {
  RingLinks links;
  const int next_position = neighbour(member, 1), previous_position = neighbour(member, -1);
  links.next.rank = member.name(next_position);
  links.previous.rank = member.name(previous_position);
  links.next.address = member.peers[static_cast<std::size_t>(next_position)];
  links.previous.address = member.peers[static_cast<std::size_t>(previous_position)];
  const std::string context = "connecting the ring, " + rank_text(member.name(member.rank)) + " to " +
                              rank_text(links.next.rank) + " (" + links.next.address + ")";
  EVENKEEL_ASSIGN(const base::Address address, base::parse_address(links.next.address));

  // All ranks call and say hello first (the kernel takes both before anybody accepts), then answer, then hear
  // the answer: so nobody waits in a circle.
  Result<base::Socket> next = call_next(address, deadline, waker);
  if (!next.ok()) return base::with_context(context, std::move(next).error());
  const std::string nonce = base::random_bytes(kNonceBytes);
  const contract::RingHello hello{static_cast<std::uint32_t>(member.rank),
                                  static_cast<std::uint32_t>(next_position), member.fence, nonce};
  Status status = next->send_all(contract::encode_ring_hello(hello, member.key, ""), deadline, waker);
  if (!status.ok()) return base::with_context(context, std::move(status).error());
  EVENKEEL_ASSIGN(links.previous.socket, Door(member, listener, deadline, waker).previous());
  status = check_answer(*next, member, next_position, nonce, deadline, waker);
  if (!status.ok()) return base::with_context(context, std::move(status).error());
  links.next.socket = std::move(*next);
  return links;
}

}  // namespace evenkeel::trainer
