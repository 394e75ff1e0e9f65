#include "trainer/collectives/tcp/ring_paths.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "trainer/collectives/shm/shm_link.h"
#include "trainer/collectives/tcp/tcp_link.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::string_view kMagic = "EKP1";
constexpr std::size_t kTokenAt = 8;
constexpr std::size_t kTokenBytes = 32;
static_assert(kTokenAt + kTokenBytes == kPathMessageBytes);
static_assert(kTokenBytes == kMailboxNameBytes && kTokenBytes == kSegmentNonceBytes);

enum class Stage : std::uint8_t { kWish = 1, kOffer = 2, kVerdict = 3 };

// 0 magic | 4 stage u8 | 5 yes u8 | 6 zero u16 | 8 token[32]: a wish's mailbox, an offer's nonce, zeros.
struct PathMessage {
  bool yes = false;
  std::string token = std::string(kTokenBytes, '\0');
};

// The line that both sides keep; each goes on when the other has spoken.
class Talk {
 public:
  Talk(base::MonotonicTime deadline, const base::Waker* waker) : deadline_(deadline), waker_(waker) {}

  Status say(base::Socket& socket, Stage stage, const PathMessage& message) const {
    std::array<std::byte, kPathMessageBytes> bytes{};
    const auto put = [&](std::size_t at, std::string_view text) {
      std::transform(text.begin(), text.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     [](char c) { return static_cast<std::byte>(c); });
    };
    put(0, kMagic);
    bytes[4] = static_cast<std::byte>(stage);
    bytes[5] = static_cast<std::byte>(message.yes ? 1 : 0);
    put(kTokenAt, std::string_view(message.token).substr(0, kTokenBytes));
    return socket.send_all(bytes, deadline_, waker_);
  }

  Result<PathMessage> hear(base::Socket& socket, Stage stage) const {
    std::array<std::byte, kPathMessageBytes> bytes{};
    EVENKEEL_TRY(socket.receive_all(bytes, deadline_, waker_));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!text.starts_with(kMagic) || bytes[4] != static_cast<std::byte>(stage)) {
      return Error{ErrorCode::kUnavailable,
                   "the neighbour does not speak this protocol (bytes 0x" + base::to_hex(text.substr(0, 8)) + ")"};
    }
    return PathMessage{bytes[5] == std::byte{1}, std::string(text.substr(kTokenAt))};
  }

 private:
  base::MonotonicTime deadline_;
  const base::Waker* waker_;
};

constexpr char kSwitchedOff[] = "switched off on this rank";
constexpr char kRefusedThere[] = "not possible or switched off on the other rank";

// The rank that reads: answers the writer's wish.
struct Offer {
  std::optional<ShmSegment> segment;
  PathMessage message;
};

Result<Offer> make_offer(const PathMessage& wish, const SharedMemoryOptions& options) {
  if (options.use == SharedMemory::kOff) return Error{ErrorCode::kUnavailable, kSwitchedOff};
  if (!wish.yes) return Error{ErrorCode::kUnavailable, kRefusedThere};
  Offer offer;
  offer.message = {true, base::random_bytes(kTokenBytes)};
  EVENKEEL_ASSIGN(ShmSegment segment, ShmSegment::make(options.capacity, offer.message.token));
  EVENKEEL_TRY(post(segment, offer.message.token, wish.token));
  segment.close_descriptor();
  offer.segment = std::move(segment);
  return offer;
}

Result<ShmMailbox> open_mailbox(const SharedMemoryOptions& options) {
  if (options.use == SharedMemory::kOff) return Error{ErrorCode::kUnavailable, kSwitchedOff};
  return ShmMailbox::open();
}

Result<ShmSegment> accept_offer(Result<ShmMailbox>& mailbox, const PathMessage& offer) {
  if (!mailbox.ok()) return mailbox.error();
  if (!offer.yes) return Error{ErrorCode::kUnavailable, kRefusedThere};
  EVENKEEL_ASSIGN(ShmSegment segment, mailbox->take(offer.token));
  segment.close_descriptor();
  return segment;
}

}  // namespace

// Wish to the next, offer to the previous, verdict to the next: each step waits only for the step before it of a
// neighbour, so that no circle of ranks can lock up.
Status choose_paths(RingLinks& links, const SharedMemoryOptions& options, base::MonotonicTime deadline,
                    const base::Waker* waker) {
  const Talk talk(deadline, waker);
  RingNeighbour &next = links.next, &previous = links.previous;
  Result<ShmMailbox> mailbox = open_mailbox(options);
  const PathMessage no;
  EVENKEEL_TRY(talk.say(next.socket, Stage::kWish, mailbox.ok() ? PathMessage{true, mailbox->name()} : no));

  EVENKEEL_ASSIGN(const PathMessage wish, talk.hear(previous.socket, Stage::kWish));
  Result<Offer> offer = make_offer(wish, options);
  EVENKEEL_TRY(talk.say(previous.socket, Stage::kOffer, offer.ok() ? offer->message : no));

  EVENKEEL_ASSIGN(const PathMessage offered, talk.hear(next.socket, Stage::kOffer));
  Result<ShmSegment> accepted = accept_offer(mailbox, offered);
  EVENKEEL_TRY(talk.say(next.socket, Stage::kVerdict, PathMessage{accepted.ok(), no.token}));
  if (accepted.ok()) {
    links.out = std::make_unique<ShmWriter>(std::move(*accepted));
  } else {
    links.out = std::make_unique<TcpWriter>(next.socket.fd());
    next.why_tcp = accepted.error().message;
  }

  EVENKEEL_ASSIGN(const PathMessage verdict, talk.hear(previous.socket, Stage::kVerdict));
  if (offer.ok() && verdict.yes) {
    links.in = std::make_unique<ShmReader>(std::move(*offer->segment));
  } else {
    links.in = std::make_unique<TcpReader>(previous.socket.fd());
    previous.why_tcp = offer.ok() ? kRefusedThere : offer.error().message;
  }
  return {};
}

}  // namespace evenkeel::trainer
