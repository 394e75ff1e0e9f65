// A worker's connection to its coordinator: joins, sends what happened, hands out what comes. Made and used
// by trainer/loop.
//
// Course: join() -> membership() -> [build the ring, restore or broadcast] -> send_ready() -> next_event()
// until Finish or Abort, with commit(), evaluated(), checkpointed() after each step -> close(). A Regroup in
// between is answered with paused(); then a Membership comes, and it goes on with the next ring. Threads: a
// background thread receives and sends the heartbeats. Every member function is thread safe; next_event and
// try_event by one thread (the loop's), which may be another than the one that sends.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"
#include "contract/messages.h"

namespace evenkeel::trainer {

struct MemberOptions {
  base::Address coordinator;
  std::string key;                                              // raw bytes of the job's key
  contract::Hello hello;                                        // the nonce is made by join()
  base::Duration failure_detection = std::chrono::seconds(10);  // d: silence for longer is a lost coordinator
  // Give up connecting after this long; absent: never (the operator has the deadlines). Retries 0.1 s .. 2 s
  // apart.
  std::optional<base::Duration> connect_timeout;
  // Wakes when this process was asked to stop (SIGTERM). Before the membership: join() ends with kAborted.
  // After it: one StopRequest goes out by itself, and the loop goes on until Finish. Null: never. Must
  // outlive the client.
  const base::Waker* stop = nullptr;
  // Adds what the machine tells to a heartbeat that is about to go out; on the background thread. May be empty.
  std::function<void(contract::Heartbeat&)> add_to_heartbeat = {};
};

// Abort and Regroup overtake all plans that were queued before them; the others come in order.
using MemberEvent = std::variant<contract::StepPlan, contract::Regroup, contract::Membership, contract::Abort,
                                 contract::Finish>;

class MemberClient {
 public:
  // Connects (with retries), proves the key both ways, sends `join` (its proof is filled in here), and blocks
  // until all ranks are there. Errors: kMismatch (refused with 78), kConflict (refused with 75: fenced off),
  // kInvalidInput (refused with 64), kPermissionDenied (the coordinator does not hold our key), kAborted
  // (stop, or the job was stopped before it began), kUnavailable (coordinator lost, or connect_timeout
  // passed). contract::exit_code_of() gives the exit code.
  static base::Result<std::unique_ptr<MemberClient>> join(MemberOptions options, contract::Join join);

  virtual ~MemberClient() = default;  // as close()

  // The group that this rank is in: of join(), then of the newest Membership that next_event() has handed out.
  // For the thread that calls next_event().
  virtual const contract::Membership& membership() const = 0;

  // Each returns kUnavailable when the coordinator is lost; then next_event() says so too.
  // Ready: after the ring stands and the state is restored. Its fence is filled in here, as in commit().
  virtual base::Status send_ready(contract::Ready ready) = 0;
  virtual base::Status commit(contract::Commit commit) = 0;
  // The answer to a Regroup, whose fence it carries.
  virtual base::Status paused(const contract::Paused& message) = 0;
  // The collectives of the present group failed: a Regroup follows.
  virtual base::Status broken(const std::string& reason) = 0;
  // By every rank, after the commit of the step whose plan asked for it (the figures are reduced, so all send
  // the same; Checkpointed has an empty directory on ranks that do not write). The coordinator ends the job
  // only when all ranks have.
  virtual base::Status evaluated(const contract::Evaluated& message) = 0;
  virtual base::Status checkpointed(const contract::Checkpointed& message) = 0;
  // This process cannot go on: the coordinator aborts the others, naming this rank. Best effort; close()
  // follows.
  virtual void fail(const contract::Failure& failure) = 0;

  // What the next heartbeats say (one of contract::kPhaseNames). Cheap: called several times a step.
  virtual void set_phase(std::int64_t step, const char* phase) = 0;

  // Blocks until an event is there. kUnavailable: coordinator lost (connection, or silence for longer than
  // d). kDeadlineExceeded: nothing until `deadline`. After Abort or Finish there are no further events: the
  // same one again.
  virtual base::Result<MemberEvent> next_event(base::MonotonicTime deadline = base::MonotonicTime::max()) = 0;
  // The same, at once; absent: nothing yet. For the look ahead of the data reader: up to 4 plans are issued
  // ahead.
  virtual std::optional<base::Result<MemberEvent>> try_event() = 0;

  // Awake while an Abort or a Regroup waits in next_event(), or the coordinator is lost: hand it to the
  // collectives, so that a rank that waits in the ring leaves at once. next_event() then has the reason.
  virtual const base::Waker& abort_waker() const = 0;

  // Seconds since the coordinator was last heard; negative: it is lost without a word of farewell. Any thread:
  // whoever has stood still must not believe that it is still what it was. An Abort, a Finish or our own
  // Failure is such a word: what ends the connection then is the end of the attempt, not a replacement.
  virtual double silence_seconds() const = 0;
  // Ends heartbeats and the connection; what was sent before is delivered (waits up to 1 s). Idempotent.
  virtual void close() = 0;
};

}  // namespace evenkeel::trainer
