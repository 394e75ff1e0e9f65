#include "trainer/collectives/tcp/ring_connect.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "base/hash.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::size_t kNonceBytes = 32;
constexpr base::Duration kStrangerPatience = std::chrono::seconds(1);
// For one whose hello was right: it may be a neighbour with a tenth of a core.
constexpr base::Duration kProofPatience = std::chrono::seconds(10);
// A connector's proof and an acceptor's answer must never be the same bytes.
const std::string kProofPrefix = "proof";
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

using HelloBytes = std::array<std::byte, contract::kRingHelloBytes>;

// A hello on its way to us.
struct Hearing {
  HelloBytes bytes{};
  std::size_t received = 0;
};

enum class Heard { kMore, kComplete, kGone };

Heard hear(base::Socket& socket, Hearing& hearing) {
  const ssize_t bytes = ::recv(socket.fd(), hearing.bytes.data() + hearing.received,
                               hearing.bytes.size() - hearing.received, MSG_DONTWAIT);
  if (bytes < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Heard::kMore : Heard::kGone;
  if (bytes == 0) return Heard::kGone;
  hearing.received += static_cast<std::size_t>(bytes);
  return hearing.received == hearing.bytes.size() ? Heard::kComplete : Heard::kMore;
}

// One that called. First it says who it is; that alone could be a record of what another once said, so it gets a
// nonce of ours and has to prove that it can sign that too.
struct Caller {
  base::Socket socket;
  base::MonotonicTime deadline;
  Hearing hearing{};
  std::string nonce = {};         // its own
  std::string proof_nonce = {};   // ours, once we have answered
};

// Both connections at once: all ranks call and say hello first (the kernel takes both before anybody accepts),
// and from then on each answers whoever speaks, so that nobody waits in a circle.
class Handshake {
 public:
  Handshake(const RingMember& member, base::Listener& listener, base::MonotonicTime deadline,
            const base::Waker* waker)
      : member_(member), listener_(listener), deadline_(deadline), waker_(waker) {}

  Status run(base::Socket& next) {
    const contract::RingHello hello{static_cast<std::uint32_t>(member_.rank), position(1), member_.fence, nonce_};
    EVENKEEL_TRY(next.send_all(contract::encode_ring_hello(hello, member_.key, ""), deadline_, waker_));
    while (!next_proved_ || !previous_) {
      const base::MonotonicTime now = base::real_clock().now();
      if (now >= deadline_) return too_late();
      callers_.remove_if([&](const Caller& caller) { return caller.deadline <= now; });
      EVENKEEL_TRY(wait(next, now));
      if (!next_proved_) EVENKEEL_TRY(hear_next(next));
      if (!previous_) hear_callers();
    }
    return {};
  }
  base::Socket take_previous() { return std::move(*previous_); }

 private:
  std::uint32_t position(int step) const { return static_cast<std::uint32_t>(neighbour(member_, step)); }

  Error too_late() const {
    const int missing = neighbour(member_, previous_ ? 1 : -1);
    return {ErrorCode::kDeadlineExceeded,
            rank_text(member_.name(missing)) + " (" + member_.peers[static_cast<std::size_t>(missing)] + ") did not " +
                (previous_ ? "answer on" : "connect to") + " the ring in time"};
  }

  // Until somebody calls, says something or has been silent for too long.
  Status wait(const base::Socket& next, base::MonotonicTime now) {
    base::MonotonicTime until = deadline_;
    const bool open = !previous_ && callers_.size() < kMaxCallers;
    std::vector<pollfd> fds{{open ? listener_.fd() : -1, POLLIN, 0},
                            {waker_ != nullptr ? waker_->fd() : -1, POLLIN, 0},
                            {next_proved_ ? -1 : next.fd(), POLLIN, 0}};
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
    callers_.push_back({std::move(*socket), base::real_clock().now() + kStrangerPatience});
    return {};
  }

  // The next rank's answer proves the key for our nonce; we prove it for its nonce in turn.
  Status hear_next(base::Socket& next) {
    const Heard heard = hear(next, next_hearing_);
    if (heard == Heard::kMore) return {};
    if (heard == Heard::kGone)
      return Error{ErrorCode::kUnavailable, "it closed the connection instead of answering"};
    EVENKEEL_ASSIGN(const contract::RingHello answer,
                    contract::decode_ring_hello(next_hearing_.bytes, member_.key, nonce_));
    if (answer.fence != member_.fence || answer.from != position(1) || answer.to != position(0)) {
      return Error{ErrorCode::kMismatch, "the answer came from position " + std::to_string(answer.from) + " of " +
                                             contract::fence_text(answer.fence) + ", expected position " +
                                             std::to_string(position(1)) + " of " +
                                             contract::fence_text(member_.fence)};
    }
    next_proved_ = true;
    const contract::RingHello proof{position(0), position(1), member_.fence, nonce_};
    const auto bytes = contract::encode_ring_hello(proof, member_.key, kProofPrefix + answer.nonce);
    return next.send_all(bytes, deadline_, waker_);
  }

  // Strangers, ranks of another fence and ranks that took us for another are let go without a word.
  void hear_callers() {
    for (auto caller = callers_.begin(); caller != callers_.end();) {
      const Heard heard = hear(caller->socket, caller->hearing);
      const bool second = !caller->proof_nonce.empty();
      if (heard == Heard::kComplete && second && proves(*caller)) {
        previous_ = std::move(caller->socket);
        return callers_.clear();
      }
      const bool stays = heard == Heard::kMore || (heard == Heard::kComplete && !second && answer(*caller));
      caller = stays ? std::next(caller) : callers_.erase(caller);
    }
  }

  bool is_previous(const contract::RingHello& hello) const {
    return hello.fence == member_.fence && hello.from == position(-1) && hello.to == position(0);
  }

  // False: not the one that we wait for.
  bool answer(Caller& caller) {
    const Result<contract::RingHello> hello = contract::decode_ring_hello(caller.hearing.bytes, member_.key, "");
    if (!hello.ok() || !is_previous(*hello)) return false;
    caller.nonce = hello->nonce;
    caller.proof_nonce = base::random_bytes(kNonceBytes);
    caller.hearing = {};
    caller.deadline = base::real_clock().now() + kProofPatience;
    const contract::RingHello reply{position(0), position(-1), member_.fence, caller.proof_nonce};
    return caller.socket.send_all(contract::encode_ring_hello(reply, member_.key, hello->nonce), deadline_, waker_)
        .ok();
  }

  bool proves(const Caller& caller) const {
    const Result<contract::RingHello> proof =
        contract::decode_ring_hello(caller.hearing.bytes, member_.key, kProofPrefix + caller.proof_nonce);
    return proof.ok() && is_previous(*proof) && proof->nonce == caller.nonce;
  }

  const RingMember& member_;
  base::Listener& listener_;
  const base::MonotonicTime deadline_;
  const base::Waker* waker_;
  const std::string nonce_ = base::random_bytes(kNonceBytes);
  Hearing next_hearing_;
  bool next_proved_ = false;
  std::list<Caller> callers_;
  std::optional<base::Socket> previous_;
};

}  // namespace

Result<RingLinks> connect_ring(const RingMember& member, base::Listener& listener,
                               const SharedMemoryOptions& shared_memory, base::MonotonicTime deadline,
                               const base::Waker* waker) {
  RingLinks links;
  const int next_position = neighbour(member, 1), previous_position = neighbour(member, -1);
  links.next.rank = member.name(next_position);
  links.previous.rank = member.name(previous_position);
  links.next.address = member.peers[static_cast<std::size_t>(next_position)];
  links.previous.address = member.peers[static_cast<std::size_t>(previous_position)];
  const std::string context = "connecting the ring, " + rank_text(member.name(member.rank)) + " to " +
                              rank_text(links.next.rank) + " (" + links.next.address + ")";
  EVENKEEL_ASSIGN(const base::Address address, base::parse_address(links.next.address));

  Result<base::Socket> next = call_next(address, deadline, waker);
  if (!next.ok()) return base::with_context(context, std::move(next).error());
  Handshake handshake(member, listener, deadline, waker);
  Status status = handshake.run(*next);
  if (!status.ok()) return base::with_context(context, std::move(status).error());
  links.next.socket = std::move(*next);
  links.previous.socket = handshake.take_previous();
  status = choose_paths(links, shared_memory, deadline, waker);
  if (!status.ok()) return base::with_context(context, std::move(status).error());
  return links;
}

}  // namespace evenkeel::trainer
