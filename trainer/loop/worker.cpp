#include "trainer/loop/worker.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/trace.h"
#include "contract/report.h"
#include "trainer/collectives/tcp/tcp_ring.h"
#include "trainer/coordinator/member_client.h"
#include "trainer/loop/abort_watch.h"
#include "trainer/loop/cgroup.h"
#include "trainer/loop/checkpoint_duty.h"
#include "trainer/loop/core_wait.h"
#include "trainer/loop/job_state.h"
#include "trainer/loop/member_events.h"
#include "trainer/loop/preflight.h"
#include "trainer/loop/preparation.h"
#include "trainer/loop/training_step.h"
#include "trainer/loop/worker_log.h"
#include "trainer/loop/worker_server.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using contract::ExitCode;

// A lost coordinator is replaced by whoever started it; after this long nobody will.
constexpr base::Duration kRejoinPatience = std::chrono::minutes(10);

struct Ending {
  ExitCode code = ExitCode::kDone;
  std::string reason;
};

class Worker {
 public:
  Worker(const Settings& settings, const WorkerDependencies& dependencies)
      : settings_(settings),
        deps_(dependencies),
        spec_(settings.config.spec),
        timer_(base::real_clock(), [this] { return core_wait_.seconds(); }),
        metrics_({settings.config.job_name, settings.rank, settings.config.ranks, settings.pod_name, "cpu",
                  EVENKEEL_VERSION, settings.restarts}) {}

  Ending run() {
    Result<Ending> ending = live();
    // What holds the neighbours goes first, so that nobody waits for a rank that has ended.
    if (client_) client_->close();
    if (!ending.ok()) return {contract::exit_code_of(ending.error().code), ending.error().message};
    return *ending;
  }
  std::int64_t step() const { return position_.step; }

 private:
  Result<Ending> live() {
    EVENKEEL_ASSIGN(server_, WorkerServer::start(settings_, metrics_));
    EVENKEEL_ASSIGN(prepared_, prepare(*deps_.files, settings_));
    const Status joined = join();
    if (!joined.ok() && joined.error().code == ErrorCode::kAborted && stopping()) {
      return Ending{ExitCode::kStopped, "asked to stop before the job had begun"};
    }
    if (!joined.ok()) return not_the_users(joined.error());
    Result<Ending> ending = work();
    metrics_.on_phases(timer_.take());  // an evaluation or checkpoint after the last commit
    log_throttling(*deps_.files, prepared_.cpu);
    if (!ending.ok()) return give_up(std::move(ending).error());
    // Linger first: as long as we are connected the coordinator keeps its own pages up, and the job counts as
    // running.
    if (ending->code == ExitCode::kDone) linger();
    client_->close();
    return ending;
  }

  // ---- from group to group
  // ------------------------------------------------------------------------------------------------
  Result<Ending> work() {
    for (;;) {
      Result<std::optional<Ending>> over = work_in_group();
      // Whoever waits for us in the ring must not wait for a rank that has left it.
      watch_.reset();
      ring_.reset();
      if (over.ok() && *over) return **over;
      std::optional<Error> broken;
      if (!over.ok()) broken = not_the_users(over.error());
      if (broken && !(elastic() && is_echo(*broken))) return *broken;
      EVENKEEL_ASSIGN(std::optional<Ending> end, await_group(std::move(broken)));
      if (end) return *end;
    }
  }

  Replica& replica() { return *prepared_.replica; }
  const Replica& replica() const { return *prepared_.replica; }
  bool elastic() const { return spec_.restart.scope == contract::RestartScope::kWorker; }

  // A broken ring, or a coordinator that is gone: the fault of somebody else.
  static bool is_echo(const Error& error) {
    return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kAborted ||
           error.code == ErrorCode::kDeadlineExceeded;
  }

  // Until the job ends, or the group: then nothing is returned.
  Result<std::optional<Ending>> work_in_group() {
    EVENKEEL_TRY(enter());
    GradientReduction reduction(*ring_, replica().engine().plan().buckets,
                                replica().engine().gradient_arena());
    const StepContext context{replica(), settings_.rank, *ring_, reduction, timer_, [this](StepPhase phase) {
                                client_->set_phase(position_.step + 1, phase_name(phase));
                              }};
    EVENKEEL_TRY(do_what_is_owed(context));
    for (;;) {
      EVENKEEL_ASSIGN(const MemberEvent event, events_->next());
      read_ahead();
      if (const auto* regroup = std::get_if<contract::Regroup>(&event)) {
        regroup_ = *regroup;
        return std::optional<Ending>();
      }
      EVENKEEL_ASSIGN(std::optional<Ending> end, ending_of(event));
      if (end) return end;
      const auto* plan = std::get_if<contract::StepPlan>(&event);
      if (plan == nullptr || plan->fence != client_->membership().fence) continue;  // void
      EVENKEEL_TRY(train(context, *plan));
      EVENKEEL_TRY(checkpoints_.report(*client_, false));
      if (plan->evaluate_after) EVENKEEL_TRY(evaluate(context, plan->step, plan->epoch));
      if (plan->checkpoint_after) {
        EVENKEEL_TRY(save(context, plan->stop_after || plan->step == client_->membership().target_steps));
      }
    }
  }

  Result<std::optional<Ending>> ending_of(const MemberEvent& event) const {
    if (const auto* abort = std::get_if<contract::Abort>(&event))
      return std::optional<Ending>({contract::exit_code_of(ErrorCode::kAborted), abort->reason});
    if (const auto* finish = std::get_if<contract::Finish>(&event)) {
      EVENKEEL_ASSIGN(Ending ending, finished(*finish));
      return std::optional<Ending>(std::move(ending));
    }
    return std::optional<Ending>();
  }

  // What the last group left undone of its last step.
  Status do_what_is_owed(const StepContext& context) {
    const contract::Membership& membership = client_->membership();
    const std::int64_t epoch = position_.epoch - (position_.cursor == 0 ? 1 : 0);
    if (membership.evaluate_first)
      EVENKEEL_TRY(evaluate(context, position_.step, std::max<std::int64_t>(0, epoch)));
    if (membership.checkpoint_first) EVENKEEL_TRY(save(context, true));
    return {};
  }

  // Between two groups: says where this rank stands, and waits for the next membership. `broken`: what ended
  // the last one, where it was not the coordinator's word.
  Result<std::optional<Ending>> await_group(std::optional<Error> broken) {
    timer_.enter(StepPhase::kOther);
    for (;;) {
      if (regroup_) {
        (void)client_->paused(where_we_stand(std::exchange(regroup_, std::nullopt)->fence));
        broken.reset();
      } else if (broken) {
        base::log_warning("left the group: " + broken->message, {{"step", position_.step}});
        (void)client_->broken(std::exchange(broken, std::nullopt)->message);
      }
      const Result<MemberEvent> event = events_->next();
      if (!event.ok()) {
        EVENKEEL_TRY(rejoin(event.error()));
        return std::optional<Ending>();
      }
      if (std::holds_alternative<contract::Membership>(*event)) return std::optional<Ending>();
      if (const auto* regroup = std::get_if<contract::Regroup>(&*event)) regroup_ = *regroup;
      EVENKEEL_ASSIGN(std::optional<Ending> end, ending_of(*event));
      if (end) return end;
    }
  }

  contract::Paused where_we_stand(const contract::Fence& fence) const {
    return {fence, position_.step, last_commit_, evaluated_step_, checkpoints_.begun_step()};
  }

  // The coordinator is gone; another one takes its place at the same address. What we hold is what it will go
  // on from.
  Status rejoin(const Error& lost) {
    if (!is_echo(lost) || stopping()) return lost;
    base::log_warning("the coordinator is lost; waiting for its replacement",
                      {{"reason", lost.message}, {"step", position_.step}});
    server_->set_ready(false);
    client_->close();
    contract::Join join = introduction(*deps_.files, settings_, prepared_, data_address());
    if (position_known_) join.held = to_message(position_, replica().rate_batch());
    MemberOptions options = member_options();
    options.connect_timeout = kRejoinPatience;
    EVENKEEL_TRY(connect(std::move(options), std::move(join)));
    return {};
  }

  void read_ahead() {
    events_->look_ahead([&](const contract::StepPlan& plan) {
      replica().expect_share(plan.epoch, share_of(plan, settings_.rank));
    });
  }

  // ---- a step
  // ------------------------------------------------------------------------------------------------
  Status train(const StepContext& context, const contract::StepPlan& plan) {
    replica().set_epoch_samples(epoch_samples(position_, plan, replica().train().samples));
    EVENKEEL_ASSIGN(contract::Commit commit, run_step(context, plan));
    commit.phases = timer_.take();
    commit.no_core_seconds = timer_.no_core().seconds;
    commit.no_core_reducing_seconds = timer_.no_core().reducing_seconds;
    commit.step_seconds = commit.phases.total() - commit.phases.eval - commit.phases.checkpoint;
    const CollectiveCount count = ring_->count(contract::CollectiveOp::kAllReduce);
    commit.collectives = count.calls - counted_.calls;
    commit.collective_bytes = count.sent_bytes - counted_.sent_bytes;
    counted_ = count;
    advance(position_, plan, replica().train().samples);
    position_.poison = replica().skipped_ids();
    commit.fence = plan.fence;
    last_commit_ = commit;
    EVENKEEL_TRY(client_->commit(commit));
    metrics_.on_step(plan, commit, unix_seconds());
    metrics_.on_collectives(*ring_);
    log_step(plan, commit, client_->membership().target_steps);
    return {};
  }

  Status evaluate(const StepContext& context, std::int64_t step, std::int64_t epoch) {
    const base::MonotonicTime begin = base::real_clock().now();
    EVENKEEL_ASSIGN(const EvaluationSums sums, run_evaluation(context));
    contract::Evaluated message;
    message.step = step;
    message.epoch = epoch;
    message.loss_sum = sums.loss;
    message.correct = sums.correct;
    message.samples = sums.samples;
    message.seconds = base::seconds(base::real_clock().now() - begin);
    counted_ = ring_->count(contract::CollectiveOp::kAllReduce);
    if (sums.samples > 0) {
      const auto n = static_cast<double>(sums.samples);
      base::log_info("evaluated", {{"step", step},
                                   {"epoch", epoch},
                                   {"loss", sums.loss / n},
                                   {"accuracy", static_cast<double>(sums.correct) / n},
                                   {"samples", sums.samples}});
      if (!sums.confusion.empty() && context.collective.rank() == 0)
        base::log_info("confusion matrix: a row for each label, a column for each answer",
                       {{"step", step}, {"matrix", sums.confusion}});
    }
    evaluated_step_ = step;
    return client_->evaluated(message);
  }

  // `last`: the run's end depends on it.
  Status save(const StepContext& context, bool last) {
    context.enter(StepPhase::kCheckpoint);
    EVENKEEL_TRY(checkpoints_.save(*client_, {settings_.config.job_uid, settings_.config.attempt}, position_,
                                   replica(), last));
    context.enter(StepPhase::kOther);
    return {};
  }

  // ---- before
  // ----------------------------------------------------------------------------------------------------
  Status join() {
    EVENKEEL_ASSIGN(
        base::Listener listener,
        base::Listener::open({settings_.bind_address, static_cast<std::uint16_t>(settings_.data_port)}));
    listener_ = std::move(listener);
    MemberOptions options = member_options();
    base::log_info("joining: waiting for the coordinator and the other ranks",
                   {{"coordinator", options.coordinator.text()},
                    {"dataAddress", data_address()},
                    {"ranks", settings_.config.ranks}});
    return connect(std::move(options), introduction(*deps_.files, settings_, prepared_, data_address()));
  }

  Status connect(MemberOptions options, contract::Join join) {
    events_.reset();
    set_client(nullptr);
    EVENKEEL_ASSIGN(std::unique_ptr<MemberClient> client,
                    MemberClient::join(std::move(options), std::move(join)));
    set_client(std::move(client));
    events_.emplace(*client_, [this] { return stopping(); });
    return {};
  }

  void set_client(std::unique_ptr<MemberClient> client) {
    const std::lock_guard lock(client_mutex_);
    client_ = std::move(client);
  }

  MemberOptions member_options() const {
    MemberOptions options;
    options.coordinator = {settings_.config.coordinator_host,
                           static_cast<std::uint16_t>(settings_.config.coordinator_port)};
    options.key = settings_.key;
    options.hello.job_uid = settings_.config.job_uid;
    options.hello.attempt = settings_.config.attempt;
    options.hello.rank = settings_.rank;
    options.hello.incarnation = settings_.process_incarnation();
    options.hello.pod_uid = settings_.pod_uid;
    options.failure_detection = std::chrono::seconds(spec_.restart.failure_detection_seconds);
    options.stop = deps_.stop;
    options.add_to_heartbeat = [this](contract::Heartbeat& beat) {
      add_quota_periods(*deps_.files, prepared_.throttled_at_start, beat);
    };
    return options;
  }

  std::string data_address() const {
    return base::Address{settings_.bind_address, listener_->port()}.text();
  }

  // Ring, state, Ready.
  Status enter() {
    const contract::Membership& membership = client_->membership();
    TcpRingOptions options;
    options.member = {membership.fence, membership.position(), membership.peers, settings_.key,
                      membership.ranks};
    options.patience = ring_patience(spec_.restart.failure_detection_seconds);
    if (!settings_.shared_memory) options.shared_memory.use = SharedMemory::kOff;
    options.cores = usable_cores();
    if (prepared_.cpu.cores > 0) options.cores = std::min(static_cast<int>(prepared_.cpu.cores), options.cores);
    ring_ = std::make_unique<TcpRing>(std::move(options), &*listener_);
    watch_ = std::make_unique<AbortWatch>(client_->abort_waker(), *ring_);
    EVENKEEL_TRY(ring_->connect());
    log_paths(*ring_);
    replica().join(*ring_);
    const base::MonotonicTime begin = base::real_clock().now();
    EVENKEEL_ASSIGN(const Restored restored,
                    restore_state(*deps_.files, membership, prepared_.checkpoints, position_, replica(),
                                  *ring_));
    position_ = restored.position;
    position_known_ = true;
    EVENKEEL_TRY(replica().skip_from_now_on(position_.poison));
    take_up_checkpoints(membership);
    if (restored.optimizer == OptimizerRestored::kStartsAnew) {
      base::log_warning("the optimizer's state begins at zero: the checkpoint's is of another optimizer");
    }
    contract::Ready ready;
    if (membership.preflight && membership.ranks.size() > 1) {
      EVENKEEL_ASSIGN(preflight_, look_before_the_first_step());
    }
    ready.preflight = preflight_;  // a coordinator that took over has not seen it
    ready.parameter_hash = replica().parameter_hash();
    ready.restore_seconds = base::seconds(base::real_clock().now() - begin);
    EVENKEEL_TRY(client_->send_ready(ready));
    server_->set_ready(true);
    metrics_.on_collectives(*ring_);
    counted_ = ring_->count(contract::CollectiveOp::kAllReduce);
    base::log_info("ready", {{"fence", contract::fence_text(membership.fence)},
                             {"ranks", membership.ranks.size()},
                             {"step", position_.step},
                             {"targetSteps", membership.target_steps},
                             {"parameterHash", ready.parameter_hash},
                             {"restoreRank", membership.restore_rank},
                             {"writer", membership.writer}});
    return {};
  }

  Result<std::optional<contract::Preflight>> look_before_the_first_step() {
    GradientReduction unused(*ring_, replica().engine().plan().buckets, replica().engine().gradient_arena());
    const StepContext context{replica(), settings_.rank, *ring_, unused, timer_, {}};
    EVENKEEL_ASSIGN(const contract::Preflight found,
                    run_preflight(context, preflight_options(spec_, replica().train().samples)));
    base::log_info("pre-flight", {{"seconds", found.seconds},
                                  {"busBytesPerSecond", found.bus_bytes_per_second},
                                  {"hopSeconds", found.hop_seconds},
                                  {"shareComputeSeconds", found.share_compute_seconds},
                                  {"baselineSamples", found.samples},
                                  {"baselineStepSeconds", found.step_seconds}});
    return std::optional(found);
  }

  // Whoever has stood still, or has lost the coordinator, may have been replaced meanwhile: then nothing of it
  // may become visible.
  void take_up_checkpoints(const contract::Membership& membership) {
    if (spec_.checkpoint.path.empty() || membership.writer != settings_.rank || checkpoints_.writes()) return;
    checkpoints_ = CheckpointDuty(*deps_.files, spec_.checkpoint, [this]() -> Status {
      const std::lock_guard lock(client_mutex_);
      const double silence = client_ ? client_->silence_seconds() : -1;
      if (silence >= 0 && silence <= spec_.restart.failure_detection_seconds) return {};
      return Error{ErrorCode::kAborted,
                   "this rank may have been replaced: it has no word from the coordinator"};
    });
  }

  // From the handshake on, what cannot be read came over the network, unless it came out of the data set.
  Error not_the_users(Error error) const {
    if (error.code == ErrorCode::kCorruptData && !replica().data_failed())
      error.code = ErrorCode::kUnavailable;
    return error;
  }

  // ---- events and endings
  // ------------------------------------------------------------------------------------------
  bool stopping() const { return deps_.stop_requested && deps_.stop_requested(); }

  Result<Ending> finished(const contract::Finish& finish) const {
    if (finish.completed) return Ending{ExitCode::kDone, finish.reason};
    if (!checkpoints_.last_error().empty()) {
      return Ending{ExitCode::kTryAgain, "stopped after step " + std::to_string(position_.step) +
                                             ", but without a checkpoint: " + checkpoints_.last_error()};
    }
    return Ending{stopping() ? ExitCode::kStopped : ExitCode::kTryAgain, "stopped: " + finish.reason};
  }

  // Work ended with `error`. A broken ring is the echo of something else: the coordinator says what. Anything
  // of our own goes to the coordinator, so that the others need not wait.
  Error give_up(Error error) {
    error = not_the_users(std::move(error));
    if (!client_ || !events_) return error;  // between two coordinators
    if (is_echo(error)) {
      const auto until =
          base::real_clock().now() + std::chrono::seconds(spec_.restart.failure_detection_seconds + 3);
      for (;;) {
        const Result<MemberEvent> event = events_->next_until(until);
        if (!event.ok()) break;
        if (const auto* abort = std::get_if<contract::Abort>(&*event))
          return {ErrorCode::kAborted, abort->reason};
        if (std::holds_alternative<contract::Finish>(*event)) break;
      }
    }
    contract::Failure failure;
    failure.exit_code = static_cast<int>(contract::exit_code_of(error.code));
    failure.reason = error.message;
    failure.step = position_.step + 1;
    client_->fail(failure);
    return error;
  }

  // The last numbers stay to be scraped, until the time is over or somebody asks us to go.
  void linger() const {
    const auto until = base::real_clock().now() + std::chrono::seconds(spec_.metrics_linger_seconds);
    while (base::real_clock().now() < until && !stopping())
      base::real_clock().sleep_for(std::chrono::milliseconds(100));
  }

  static double unix_seconds() { return base::seconds(base::real_clock().wall_now().time_since_epoch()); }

  const Settings& settings_;
  const WorkerDependencies& deps_;
  const contract::TrainingJobSpec& spec_;
  CoreWait core_wait_;  // of the loop's thread
  StepTimer timer_;
  ReplicaMetrics metrics_;
  std::unique_ptr<WorkerServer> server_;
  Prepared prepared_;  // from the first moments on
  std::optional<contract::Preflight> preflight_;  // that this process took part in
  std::optional<base::Listener> listener_;
  std::mutex client_mutex_;  // of the pointer: the checkpoint's writer looks at it from its own thread
  std::unique_ptr<MemberClient> client_;
  std::optional<MemberEvents> events_;  // of client_
  std::optional<contract::Regroup> regroup_;  // not answered yet
  std::unique_ptr<TcpRing> ring_;
  std::unique_ptr<AbortWatch> watch_;  // uses ring_ and client_: goes before them
  JobPosition position_;
  bool position_known_ = false;  // since the first group
  std::optional<contract::Commit> last_commit_;
  std::int64_t evaluated_step_ = 0;
  CollectiveCount counted_;  // all-reduces that earlier commits told of
  CheckpointDuty checkpoints_;
};

}  // namespace

ExitCode run_worker(const Settings& settings, const WorkerDependencies& dependencies) {
  Ending ending;
  std::int64_t step = 0;
  if (!settings.trace.empty()) {
    base::open_trace("rank " + std::to_string(settings.rank), settings.rank);
    base::name_trace_thread("training loop");
  }
  {
    Worker worker(settings, dependencies);
    ending = worker.run();
    step = worker.step();
  }
  if (base::trace_is_open()) {
    const Status traced = base::write_trace(*dependencies.files, settings.trace);
    if (!traced.ok()) base::log_warning("the trace is not written: " + traced.error().message);
  }
  const bool failed = ending.code != ExitCode::kDone && ending.code != ExitCode::kStopped;
  base::log(failed ? base::LogLevel::kError : base::LogLevel::kInfo,
            failed ? ending.reason : "ended: " + ending.reason,
            {{"exitCode", static_cast<int>(ending.code)}, {"step", step}});
  // A machine without that file is no reason to fail: the message is for the kubelet.
  const std::string text = contract::termination_message(
      contract::WorkerTermination{ending.reason, static_cast<int>(ending.code), step});
  const std::string_view pieces[] = {text};
  if (!settings.termination_log.empty())
    (void)dependencies.files->write_synced(settings.termination_log, pieces);
  return ending.code;
}

}  // namespace evenkeel::trainer
