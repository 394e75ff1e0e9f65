// The coordinator's state machine: who joined, what is planned and committed, when the job ends and how.
// Events in, messages out; sockets, handshake and clock are the server's (coordinator_server.h), so that a
// test can tell any story. Times are seconds of one monotonic clock. Not thread safe.
//
//   kRendezvous: ranks come and go; no collective has begun. All there and equal -> memberships go out.
//   kRunning: parameters agree, plans go out 4 ahead. -> kStopping when asked to stop.
//   From the first membership on, ranks work in groups. A group ends when one of it is lost (spec.restart.scope
//   Job: that ends the attempt) or another one waits at a step boundary: Regroup -> Paused of all that are
//   left -> what any of them has committed is committed -> Membership -> Ready -> plans under the next
//   generation (coordination_regroup.cpp).
//   kCompleted | kStopped: Finish is sent; connections close by themselves (linger), then done().
//   kFailed: Abort is sent to all; connections close, then done().
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/exit_codes.h"
#include "contract/messages.h"
#include "contract/report.h"
#include "contract/trainer_config.h"
#include "trainer/coordinator/balancer.h"
#include "trainer/coordinator/cost_fit.h"
#include "trainer/coordinator/diagnosis.h"
#include "trainer/coordinator/history.h"
#include "trainer/coordinator/ledger.h"
#include "trainer/coordinator/quota_window.h"
#include "trainer/coordinator/run_facts.h"
#include "trainer/coordinator/sample_oracle.h"
#include "trainer/coordinator/tuner.h"

namespace evenkeel::trainer {

using ConnectionId = std::int64_t;

struct Outgoing {
  ConnectionId to = 0;
  contract::MessageType type = contract::MessageType::kHeartbeat;
  base::Json payload;
  bool close_after = false;  // nothing more is expected from this one
};

// What others count. Called in the middle of an event; must not call back.
class CoordinationObserver {
 public:
  virtual ~CoordinationObserver() = default;
  virtual void on_step(const contract::StepPlan& plan, const contract::Commit& any_commit) = 0;
  virtual void on_evaluated(const contract::Evaluated& evaluated) = 0;
  virtual void on_checkpoint(const contract::Checkpointed& checkpoint) = 0;  // error not empty: it failed
  virtual void on_restored(double seconds) = 0;
  virtual void on_failure(const contract::LastFailure& failure) = 0;
};

class Coordination {
 public:
  // `observer` may be null; else it must outlive this.
  Coordination(contract::TrainerConfig config, double now, CoordinationObserver* observer = nullptr);

  // A worker has proved that it holds the job's key.
  void joined(ConnectionId id, const contract::Hello& hello, const contract::Join& join, double now);
  void received(ConnectionId id, contract::MessageType type, const base::Json& payload, double now);
  void disconnected(ConnectionId id, const std::string& reason, double now);
  // This process was asked to end. In an elastic job that is not yet the job's end: see who_is_to_stop().
  void stop(const std::string& reason, double now);
  // The job is to have this many ranks from now on; those beyond leave, and others may join, at a step boundary.
  void set_wanted(int ranks, double now);
  // After everything that has arrived was handed in: a late look at the clock must not make silence out of a
  // full buffer.
  void tick(double now);

  std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }
  bool done(double now) const;
  contract::JobStage stage() const { return stage_; }
  int exit_code() const { return exit_code_; }
  // When tick() has something to do at the latest, in seconds from `now`.
  double next_deadline_in(double now) const;
  contract::JobReport report(double now) const;
  const Findings& findings() const;  // of the last steps while it runs, of all at the end

 private:
  struct Member {
    ConnectionId connection = 0;
    contract::Hello hello;
    contract::Join join;
    double last_heard = 0;
    bool connected = true;
    bool in_group = false;  // of the present generation; else it waits for the next
    bool paused = false;    // has left the last group
    bool ready = false;
    bool reported = false;  // it said itself that it cannot go on
    std::optional<double> asked_to_stop_at;
    bool leaving = false;  // is let go at the next step boundary
    bool rests = false;    // so slow that the others are faster without it: it waits, and may be called back
    std::string parameter_hash;
    double restore_seconds = 0;
    std::int64_t committed = 0;     // last step this rank committed
    std::int64_t evaluated = 0;     // last step of an Evaluated
    std::int64_t checkpointed = 0;  // last step of a Checkpointed
    std::optional<contract::Commit> last;  // of its last step, as its Paused told
    std::int64_t saving = 0;               // newest step that it has written or is writing
    std::int64_t step = 0;                 // from heartbeats
    std::string phase;
    double phase_since = 0;
    QuotaWindow quota;
  };
  // Where the ranks are between joining and stepping.
  enum class Turn { kGathering, kPausing, kForming, kStepping };

  // Rendezvous.
  std::string refusal_of(const contract::Hello& hello) const;
  void refuse(ConnectionId id, contract::ExitCode code, const std::string& reason);
  void refuse_the_different();
  bool make_room(ConnectionId id, const contract::Hello& hello, double now);
  struct Newest {
    contract::StateSource source = contract::StateSource::kInitial;
    int rank = -1;
    contract::CheckpointPosition position;
  };
  Newest newest_state() const;
  std::string sharding_text() const;
  std::string sharding_refusal() const;
  void tell_sharding() const;
  void add_sharding_facts(EpochFacts& facts) const;
  bool all_are_here() const;
  bool begins_short(double now) const;
  void begin(double now);
  // Groups.
  bool elastic() const { return config_.spec.restart.scope == contract::RestartScope::kWorker; }
  bool joiner_waits() const;
  bool is_leaver(const Member& member) const;
  bool leaver_stays() const;
  bool takes_part(const std::optional<Member>& member) const;
  void dismiss_leavers();
  bool may_rest(int rank) const;
  const char* reason_for_another_group() const;
  void prepare_another_group();
  std::int64_t ranks_here() const;
  void call_all_back();
  void follow_the_size();
  std::int64_t ranks_at_least() const;
  void regroup(const std::string& reason, double now);
  void on_paused(int rank, const contract::Paused& paused, double now);
  void on_broken(int rank, const contract::Broken& broken, double now);
  void form_if_all_paused(double now);
  void catch_up(std::int64_t step, double now);
  void form(contract::Membership membership, double now);
  void form_again(std::int64_t step, double now);
  bool owes_evaluation(std::int64_t step) const;
  bool owes_checkpoint(std::int64_t step) const;
  void drop_silent_and_hung(double now);
  std::string stands_still(const Member& member, double now) const;
  // Running.
  Member* member_of(ConnectionId id);
  void on_ready(int rank, const contract::Ready& ready, double now);
  void start_stepping(double now);
  void issue_plans(double now);
  void on_commit(int rank, const contract::Commit& commit, double now);
  std::string commit_error(int rank, const contract::Commit& commit) const;
  void commit_step(const std::vector<std::optional<contract::Commit>>& by_rank, double now);
  bool prove(const contract::StepPlan& plan, const contract::Commit* known, double now);
  bool count_step(const contract::StepPlan& plan, const contract::Commit* known, double now);
  void measure(const contract::StepPlan& plan, const std::vector<std::optional<contract::Commit>>& by_rank,
               double now);
  StepWork by_quota(StepWork work) const;
  void measure_noise(const std::vector<std::optional<contract::Commit>>& by_rank);
  void forget_measurements(std::int64_t before_step);
  void balance(const StepWork& work, bool special);
  BalancerConfig balancer_config() const;
  void tune(const StepWork& work, const contract::StepPlan& plan, bool special);
  std::optional<BatchOffer> batch_offer() const;
  std::optional<CrowdedNode> crowded_node() const;
  void on_evaluated(int rank, const contract::Evaluated& evaluated);
  void on_checkpointed(int rank, const contract::Checkpointed& checkpoint, double now);
  void finish_if_all_is_done(double now);
  void finish(bool completed, const std::string& reason, double now);
  // The end.
  void on_stop_request(int rank, const contract::StopRequest& request, double now);
  void who_is_to_stop(double now);
  void stop_all(const std::string& reason, double now);
  bool ends_the_job(int exit_code) const;
  void lost(int rank, const std::string& reason, double now);
  void suspect(int rank, int exit_code, const std::string& reason, double now);
  void fail(int rank, int exit_code, const std::string& reason, double now);
  void send_to_all(contract::MessageType type, const base::Json& payload, bool close_after = false);
  std::string missing_text() const;
  bool running() const {
    return stage_ == contract::JobStage::kRunning || stage_ == contract::JobStage::kStopping;
  }
  bool ended() const;

  // Report.
  contract::Progress progress(double now) const;
  std::vector<contract::ReplicaReport> replicas(const contract::Progress& progress) const;
  std::string state_of(const Member& member) const;
  std::map<std::string, double> time_account(double now) const;
  std::optional<double> samples_per_second() const;
  DiagnosisInput diagnosis_input(const DiagnosisWindow& window) const;
  void add_data_facts(JobFacts& job) const;
  CheckFacts check_facts() const;
  bool open_step_is_uneven() const;
  std::vector<contract::Remedy> remedies(const Findings& found) const;
  contract::Balance balance_report(const Findings& found) const;

  contract::TrainerConfig config_;
  contract::Fence fence_;
  CoordinationObserver* observer_;
  double started_at_, now_ = 0;  // of the last tick
  double failure_detection_s_;

  contract::JobStage stage_ = contract::JobStage::kRendezvous;
  Turn turn_ = Turn::kGathering;
  bool begun_ = false;  // memberships are out
  double last_join_at_ = 0, turn_since_ = 0;
  std::optional<contract::Join> reference_;  // what all must be like, once the job has begun
  std::string group_reason_;                 // why the last group ended
  int barren_groups_ = 0;                    // in a row, that committed nothing
  std::int64_t steps_in_group_ = 0;
  double longest_phase_s_ = 0;
  std::int64_t losses_ = 0;  // ranks that were lost
  std::optional<double> broken_at_;
  std::string broken_reason_;
  bool stop_requested_ = false;
  std::string stop_reason_;
  std::optional<double> asked_to_stop_at_;  // this process
  bool left_ = false;                       // alone: another coordinator takes over
  int exit_code_ = static_cast<int>(contract::ExitCode::kInternal);
  std::optional<double> ended_at_;
  int wanted_;                                  // ranks that the job is to have
  int size_;                                    // ranks that the global batch is for
  std::vector<std::optional<Member>> members_;  // by rank; may be longer than wanted_ after a job became smaller
  std::vector<Outgoing> outgoing_;

  std::optional<Ledger> ledger_;
  std::optional<SampleOracle> oracle_;
  RunFacts run_facts_;
  std::optional<Balancer> balancer_;
  std::map<std::int64_t, std::vector<std::optional<contract::Commit>>>
      commits_;                                       // by step, then rank; not yet complete
  std::map<std::int64_t, contract::StepPlan> plans_;  // issued and not committed
  std::optional<contract::StepPlan> last_plan_;       // of the last committed step

  struct Suspect {
    contract::LastFailure failure;
    double settle_at = 0;
  };
  std::optional<Suspect> suspect_;  // a failure that may only be the echo of another rank's
  std::optional<contract::LastFailure> failure_;
  std::string message_;

  DiagnosisWindow window_;  // the last steps: what is so now
  DiagnosisWindow
      run_window_;  // all steps of the attempt, as far as they are kept: what it was, once it has ended
  std::optional<Findings> before_change_;  // of run_window_ when it was last forgotten
  std::optional<contract::Preflight> preflight_;
  std::int64_t windows_from_step_ = 0;  // steps before it go into no window
  StragglerRule rule_;
  Tuner tuner_;
  NoiseMeter noise_;
  std::optional<std::int64_t> next_batch_;  // global batch that is to be in force from the next step boundary on
  std::optional<BalanceDecision> next_drop_;  // the rank is to rest from then on
  std::optional<BalanceDecision> dropped_;    // it does, and the group without it is about to form
  CostFit cost_fit_;
  History history_;
  double gradient_bytes_ = 0;  // of the last step's reduction; 0: unknown
  mutable std::optional<Findings> findings_;  // of the window in force; made when asked for
  struct Done {
    double at = 0;
    double samples = 0;
    double loss_sum = 0;
  };
  std::deque<Done> recent_;  // committed steps of the last seconds
  std::optional<double> begun_at_, running_at_;
  double input_wait_s_ = 0, straggler_wait_s_ = 0, save_s_ = 0, restore_s_ = 0;
  bool last_was_special_ = false;
  std::optional<double> last_commit_at_;
  std::optional<contract::Evaluated> evaluation_;
  int writer_ = 0;                         // rank that writes checkpoints
  std::int64_t checkpoint_step_ = 0;       // newest that was written
  std::int64_t checkpoint_told_step_ = 0;  // newest of which it is known how it went
};

}  // namespace evenkeel::trainer
