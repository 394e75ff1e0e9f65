#include "trainer/coordinator/member_client.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "contract/exit_codes.h"
#include "trainer/coordinator/control_channel.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::MonotonicTime;
using base::Result;
using base::Status;
using contract::MessageType;

constexpr base::Duration kFirstRetry = std::chrono::milliseconds(100);
constexpr base::Duration kLastRetry = std::chrono::seconds(2);
constexpr base::Duration kConnectTime = std::chrono::seconds(10);    // one attempt
constexpr base::Duration kHandshakeTime = std::chrono::seconds(10);  // Hello to Challenge
constexpr base::Duration kCloseTime = std::chrono::seconds(1);
// A peer with the wrong key may be an address that DNS has not forgotten yet; after this many it is the key.
constexpr int kMaxForeignCoordinators = 10;

MonotonicTime now() {
  return base::real_clock().now();
}

int poll_ms(base::Duration left) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60000));
}

Error refused(const contract::Refused& message) {
  using contract::ExitCode;
  if (message.exit_code == static_cast<int>(ExitCode::kMismatch))
    return {ErrorCode::kMismatch, message.reason};
  if (message.exit_code == static_cast<int>(ExitCode::kBadConfiguration))
    return {ErrorCode::kInvalidInput, message.reason};
  return {ErrorCode::kConflict, message.reason};
}

// The next frame, or kDeadlineExceeded, kAborted (waker), kUnavailable.
Result<ControlFrame> await_frame(ControlChannel& channel, MonotonicTime deadline, const base::Waker* stop) {
  while (true) {
    EVENKEEL_ASSIGN(std::optional<ControlFrame> frame, channel.next_frame());
    if (frame) return std::move(*frame);
    if (now() >= deadline) return Error{ErrorCode::kDeadlineExceeded, "no answer from the coordinator"};
    const short out = channel.has_pending() ? POLLOUT : 0;
    std::array<pollfd, 2> fds{pollfd{channel.fd(), static_cast<short>(POLLIN | out), 0},
                              pollfd{stop != nullptr ? stop->fd() : -1, POLLIN, 0}};
    ::poll(fds.data(), fds.size(), poll_ms(deadline - now()));
    if (fds[1].revents != 0) return Error{ErrorCode::kAborted, "asked to stop before the job began"};
    EVENKEEL_TRY(channel.flush());
    if (fds[0].revents != 0) EVENKEEL_TRY(channel.read_available());
  }
}

class Client final : public MemberClient {
 public:
  Client(MemberOptions options, ControlChannel channel, contract::Membership membership)
      : options_(std::move(options)), membership_(std::move(membership)), channel_(std::move(channel)) {
    fence_ = membership_.fence;
    last_heard_ = now();
    thread_ = std::thread([this] { attend(); });
  }
  ~Client() override { close(); }

  const contract::Membership& membership() const override { return membership_; }

  Status send_ready(contract::Ready ready) override {
    ready.fence = membership_.fence;
    return send(MessageType::kReady, to_json(ready));
  }
  Status commit(contract::Commit commit) override {
    commit.fence = membership_.fence;
    return send(MessageType::kCommit, to_json(commit));
  }
  Status paused(const contract::Paused& message) override {
    return send(MessageType::kPaused, to_json(message));
  }
  Status broken(const std::string& reason) override {
    return send(MessageType::kBroken, to_json(contract::Broken{membership_.fence, reason}));
  }
  Status evaluated(const contract::Evaluated& message) override {
    return send(MessageType::kEvaluated, to_json(message));
  }
  Status checkpointed(const contract::Checkpointed& message) override {
    return send(MessageType::kCheckpointed, to_json(message));
  }
  void fail(const contract::Failure& failure) override {
    (void)send(MessageType::kFailure, to_json(failure));
    const std::lock_guard lock(mutex_);
    failed_ = true;
  }

  void set_phase(std::int64_t step, const char* phase) override {
    step_.store(step, std::memory_order_relaxed);
    phase_.store(phase, std::memory_order_relaxed);
  }

  Result<MemberEvent> next_event(MonotonicTime deadline) override {
    std::unique_lock lock(mutex_);
    const auto there = [&] { return has_event(); };
    if (deadline == MonotonicTime::max()) {
      changed_.wait(lock, there);
    } else if (!changed_.wait_until(lock, deadline, there)) {
      return Error{ErrorCode::kDeadlineExceeded, "no plan from the coordinator yet"};
    }
    return take_event();
  }
  std::optional<Result<MemberEvent>> try_event() override {
    const std::lock_guard lock(mutex_);
    if (!has_event()) return std::nullopt;
    return take_event();
  }

  const base::Waker& abort_waker() const override { return abort_waker_; }

  double silence_seconds() const override {
    const std::lock_guard lock(mutex_);
    const bool word_given = failed_ || abort_ || finish_;
    return lost_ && !word_given ? -1 : base::seconds(now() - last_heard_);
  }

  void close() override;

 private:
  Status send(MessageType type, const base::Json& payload);
  // The background thread.
  void attend();
  void wait_for_input(bool& stop_seen);
  void receive();
  void on_frame(const ControlFrame& frame);
  // With mutex_ held.
  bool has_event() const {
    return abort_ || regroup_ || next_membership_ || lost_ || !plans_.empty() || finish_;
  }
  Result<MemberEvent> take_event();
  void lose(const Error& error);

  const MemberOptions options_;
  contract::Membership membership_;  // of the thread that calls next_event()
  std::atomic<std::int64_t> step_{0};
  std::atomic<const char*> phase_{"other"};

  mutable std::mutex mutex_;  // everything below, but the wakers
  std::condition_variable changed_;
  ControlChannel channel_;
  MonotonicTime last_heard_{};
  MonotonicTime next_beat_{};
  contract::Fence fence_;  // the newest: plans of others are void
  std::deque<contract::StepPlan> plans_;
  std::optional<contract::Regroup> regroup_;
  std::optional<contract::Membership> next_membership_;
  std::optional<contract::Abort> abort_;
  std::optional<contract::Finish> finish_;
  std::optional<Error> lost_;
  bool failed_ = false;  // we said so
  bool closing_ = false;

  base::Waker wake_thread_;
  base::Waker abort_waker_;
  std::mutex close_mutex_;  // close() by one thread at a time
  std::thread thread_;
};

Status Client::send(MessageType type, const base::Json& payload) {
  const std::lock_guard lock(mutex_);
  if (lost_) return *lost_;
  const Status sent = channel_.send(type, payload);
  if (!sent.ok()) {
    // What has arrived already may say why: an Abort or Refused lies in the buffer of a connection that is
    // closed.
    (void)channel_.read_available();
    receive();
    if (!lost_ && !abort_ && !finish_) lose(sent.error());
    return sent.error();
  }
  if (channel_.has_pending()) wake_thread_.wake();  // it waits for room
  return {};
}

void Client::attend() {
  bool stop_seen = false;
  while (true) {
    wait_for_input(stop_seen);
    const std::lock_guard lock(mutex_);
    wake_thread_.reset();
    if (closing_ || lost_) return;
    Status status = channel_.flush();
    const Status read = channel_.read_available();
    receive();
    if (status.ok()) status = read;
    // Only now that everything that has come was read: a process that stood still has heard nothing, but was
    // not left alone.
    if (status.ok() && now() - last_heard_ > options_.failure_detection) {
      status = Error{ErrorCode::kUnavailable, "nothing heard from the coordinator for " +
                                                  std::to_string(base::seconds(options_.failure_detection)) +
                                                  " s"};
    }
    if (status.ok() && now() >= next_beat_) {
      next_beat_ = now() + options_.failure_detection / 8;
      contract::Heartbeat beat{step_, phase_.load()};
      if (options_.add_to_heartbeat) options_.add_to_heartbeat(beat);
      status = channel_.send(MessageType::kHeartbeat, to_json(beat));
    }
    if (!status.ok()) return lose(status.error());
  }
}

void Client::wait_for_input(bool& stop_seen) {
  std::array<pollfd, 3> fds{
      pollfd{wake_thread_.fd(), POLLIN, 0},
      pollfd{options_.stop != nullptr && !stop_seen ? options_.stop->fd() : -1, POLLIN, 0}, pollfd{-1, 0, 0}};
  base::Duration wait{};
  {
    const std::lock_guard lock(mutex_);
    fds[2] = {channel_.fd(), static_cast<short>(POLLIN | (channel_.has_pending() ? POLLOUT : 0)), 0};
    wait = next_beat_ - now();
  }
  ::poll(fds.data(), fds.size(), poll_ms(wait));
  if (fds[1].revents != 0) {
    stop_seen = true;
    (void)send(MessageType::kStopRequest, to_json(contract::StopRequest{"SIGTERM"}));
  }
}

// Frames that are complete. mutex_ is held.
void Client::receive() {
  while (!lost_) {
    auto frame = channel_.next_frame();
    if (!frame.ok()) return lose(frame.error());
    if (!frame->has_value()) return;
    last_heard_ = now();
    on_frame(**frame);
  }
}

void Client::on_frame(const ControlFrame& frame) {
  const auto bad = [&](const Error& error) {
    lose(base::with_context("the coordinator sent what cannot be read", error));
  };
  switch (frame.type) {
    case MessageType::kHeartbeat:
      return;
    case MessageType::kStepPlan: {
      auto plan = contract::decode_step_plan(frame.payload);
      if (!plan.ok()) return bad(plan.error());
      if (plan->fence != fence_) return;  // void
      plans_.push_back(std::move(*plan));
      break;
    }
    case MessageType::kRegroup: {
      auto regroup = contract::decode_regroup(frame.payload);
      if (!regroup.ok()) return bad(regroup.error());
      fence_ = regroup->fence;
      regroup_ = std::move(*regroup);
      next_membership_.reset();
      plans_.clear();
      abort_waker_.wake();
      break;
    }
    case MessageType::kMembership: {
      auto membership = contract::decode_membership(frame.payload);
      if (!membership.ok()) return bad(membership.error());
      fence_ = membership->fence;
      next_membership_ = std::move(*membership);
      break;
    }
    case MessageType::kAbort: {
      auto abort = contract::decode_abort(frame.payload);
      if (!abort.ok()) return bad(abort.error());
      abort_ = std::move(*abort);
      plans_.clear();
      abort_waker_.wake();
      break;
    }
    case MessageType::kFinish: {
      auto finish = contract::decode_finish(frame.payload);
      if (!finish.ok()) return bad(finish.error());
      finish_ = std::move(*finish);
      break;
    }
    case MessageType::kRefused: {
      auto message = contract::decode_refused(frame.payload);
      if (!message.ok()) return bad(message.error());
      return lose(refused(*message));
    }
    default:
      return bad({ErrorCode::kCorruptData, "message type " + std::to_string(static_cast<int>(frame.type))});
  }
  changed_.notify_all();
}

Result<MemberEvent> Client::take_event() {
  if (abort_) return MemberEvent(*abort_);
  if (lost_ && !finish_) return *lost_;
  if (regroup_) {
    contract::Regroup regroup = *std::exchange(regroup_, std::nullopt);
    if (!lost_) abort_waker_.reset();
    return MemberEvent(std::move(regroup));
  }
  if (next_membership_) {
    membership_ = *std::exchange(next_membership_, std::nullopt);
    return MemberEvent(membership_);
  }
  if (!plans_.empty() && !lost_) {
    contract::StepPlan plan = std::move(plans_.front());
    plans_.pop_front();
    return MemberEvent(std::move(plan));
  }
  if (finish_) return MemberEvent(*finish_);
  return *lost_;
}

void Client::lose(const Error& error) {
  if (lost_) return;
  lost_ = error;
  // After Finish the coordinator leaves first when we linger: no loss, and nobody waits in the ring.
  if (!finish_) abort_waker_.wake();
  changed_.notify_all();
}

void Client::close() {
  const std::lock_guard one_at_a_time(close_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    closing_ = true;
    wake_thread_.wake();
  }
  thread_.join();
  const std::lock_guard lock(mutex_);
  // Unread bytes at close() would make the system send a reset, which may overtake what we said last.
  const MonotonicTime deadline = now() + kCloseTime;
  bool told = false;
  while (!lost_ && now() < deadline) {
    if (!channel_.flush().ok()) break;
    if (!told && !channel_.has_pending()) {
      channel_.finish_sending();
      told = true;
    }
    pollfd fd{channel_.fd(), static_cast<short>(POLLIN | (channel_.has_pending() ? POLLOUT : 0)), 0};
    ::poll(&fd, 1, poll_ms(deadline - now()));
    if (fd.revents != 0 && !channel_.read_available().ok()) break;
  }
  channel_.close();
  if (!lost_) lost_ = Error{ErrorCode::kAborted, "the connection to the coordinator was closed"};
  changed_.notify_all();
}

// One attempt: connection, handshake, Join. kPermissionDenied: the other side does not hold the key.
Result<ControlChannel> introduce(const MemberOptions& options, const contract::Hello& hello,
                                 contract::Join& join) {
  EVENKEEL_ASSIGN(base::Socket socket,
                  base::connect_to(options.coordinator, now() + kConnectTime, options.stop));
  ControlChannel channel(std::move(socket));
  EVENKEEL_TRY(channel.send(MessageType::kHello, to_json(hello)));
  EVENKEEL_ASSIGN(const ControlFrame frame, await_frame(channel, now() + kHandshakeTime, options.stop));
  if (frame.type != MessageType::kChallenge)
    return Error{ErrorCode::kCorruptData, "the coordinator did not answer with a challenge"};
  EVENKEEL_ASSIGN(const contract::Challenge challenge, contract::decode_challenge(frame.payload));
  const std::string expected = contract::handshake_proof(options.key, "coordinator", hello, hello.nonce_hex);
  if (!base::equal_secrets(challenge.proof_hex, expected)) {
    return Error{ErrorCode::kPermissionDenied,
                 "what listens at " + options.coordinator.text() + " does not hold this job's key"};
  }
  channel.trust_peer();
  join.proof_hex = contract::handshake_proof(options.key, "worker", hello, challenge.nonce_hex);
  EVENKEEL_TRY(channel.send(MessageType::kJoin, to_json(join)));
  return channel;
}

// Until all ranks are there. Heartbeats go both ways meanwhile.
Result<contract::Membership> await_membership(const MemberOptions& options, ControlChannel& channel) {
  MonotonicTime last_heard = now();
  while (true) {
    auto frame = await_frame(channel, now() + options.failure_detection / 8, options.stop);
    if (!frame.ok() && frame.error().code != ErrorCode::kDeadlineExceeded) return std::move(frame).error();
    EVENKEEL_TRY(channel.send(MessageType::kHeartbeat, to_json(contract::Heartbeat{0, "other"})));
    if (!frame.ok()) {
      if (now() - last_heard <= options.failure_detection) continue;
      return Error{ErrorCode::kUnavailable, "the coordinator has fallen silent"};
    }
    last_heard = now();
    switch (frame->type) {
      case MessageType::kMembership:
        return contract::decode_membership(frame->payload);
      case MessageType::kRefused: {
        EVENKEEL_ASSIGN(const contract::Refused message, contract::decode_refused(frame->payload));
        return refused(message);
      }
      case MessageType::kAbort: {
        EVENKEEL_ASSIGN(const contract::Abort message, contract::decode_abort(frame->payload));
        return Error{ErrorCode::kUnavailable, "the job was aborted before it began: " + message.reason};
      }
      case MessageType::kFinish:
        return Error{ErrorCode::kAborted, "the job was stopped before it began"};
      default:
        break;
    }
  }
}

bool worth_a_retry(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded ||
         code == ErrorCode::kPermissionDenied || code == ErrorCode::kCorruptData;
}

// False: woken by `stop`.
bool sleep_unless_stopped(base::Duration duration, const base::Waker* stop) {
  pollfd fd{stop != nullptr ? stop->fd() : -1, POLLIN, 0};
  ::poll(&fd, 1, poll_ms(duration));
  return fd.revents == 0;
}

Result<ControlChannel> introduce_with_retries(const MemberOptions& options, const contract::Hello& hello,
                                              contract::Join& join) {
  const MonotonicTime begin = now();
  base::Duration pause = kFirstRetry;
  std::string told;
  int foreign = 0;
  while (true) {
    auto channel = introduce(options, hello, join);
    if (channel.ok() || !worth_a_retry(channel.error().code)) return channel;
    const Error& error = channel.error();
    foreign = error.code == ErrorCode::kPermissionDenied ? foreign + 1 : 0;
    if (foreign >= kMaxForeignCoordinators) return error;
    if (options.connect_timeout && now() - begin >= *options.connect_timeout) {
      return Error{ErrorCode::kUnavailable,
                   "no coordinator at " + options.coordinator.text() + ": " + error.message};
    }
    // At the start of a job it seldom does at once: no reason to warn.
    if (told != error.message)
      base::log_info("the coordinator does not answer yet", {{"reason", error.message}});
    told = error.message;
    if (!sleep_unless_stopped(pause, options.stop))
      return Error{ErrorCode::kAborted, "asked to stop before the job began"};
    pause = std::min(pause * 2, kLastRetry);
  }
}

}  // namespace

Result<std::unique_ptr<MemberClient>> MemberClient::join(MemberOptions options, contract::Join join) {
  contract::Hello hello = options.hello;
  hello.nonce_hex = base::to_hex(base::random_bytes(32));
  EVENKEEL_ASSIGN(ControlChannel channel, introduce_with_retries(options, hello, join));
  EVENKEEL_ASSIGN(contract::Membership membership, await_membership(options, channel));
  return std::unique_ptr<MemberClient>(
      std::make_unique<Client>(std::move(options), std::move(channel), std::move(membership)));
}

}  // namespace evenkeel::trainer
