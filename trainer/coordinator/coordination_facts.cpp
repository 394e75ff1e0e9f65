// What the coordinator knows of its job beside the times of its steps, for the diagnosis. Whatever is not known stays
// unknown, and no rule fires for it.
#include <algorithm>
#include <cmath>
#include <map>

#include "contract/job/sample_groups.h"
#include "trainer/coordinator/coordination.h"

namespace evenkeel::trainer {
namespace {

// By what factor the learning rate is raised where the batch is k times that of one rank.
double rate_factor(const contract::TrainingSpec& training, double k) {
  using contract::LearningRateScaling;
  const std::string& optimizer = training.optimizer.type;
  LearningRateScaling scaling = training.learning_rate_scaling;
  if (scaling == LearningRateScaling::kAuto)
    scaling = optimizer == "sgd" || optimizer == "lars" ? LearningRateScaling::kLinear : LearningRateScaling::kSqrt;
  if (scaling == LearningRateScaling::kNone) return 1;
  return scaling == LearningRateScaling::kLinear ? k : std::sqrt(k);
}

// "rank 2: LossScaledByReplicas: over the same samples ...": the check and its sentence.
std::optional<FailedCheck> failed_check(const std::string& reason) {
  for (const char* name : {"PeerMemoryCorruption", "LossScaledByReplicas", "GradientDiffers", "ParameterDrift"}) {
    const std::size_t at = reason.find(std::string(name) + ": ");
    if (at != std::string::npos) return FailedCheck{name, reason.substr(at + std::string(name).size() + 2)};
  }
  return std::nullopt;
}

// What Auto is, by the optimizer (training-semantics 2).
std::string rate_rule_name(const contract::TrainingSpec& training) {
  switch (training.learning_rate_scaling) {
    case contract::LearningRateScaling::kLinear:
      return "Linear";
    case contract::LearningRateScaling::kSqrt:
      return "Sqrt";
    case contract::LearningRateScaling::kNone:
      return "None";
    case contract::LearningRateScaling::kAuto:
      break;
  }
  return training.optimizer.type.starts_with("adam") ? "Sqrt" : "Linear";
}

}  // namespace

CheckFacts Coordination::check_facts() const {
  CheckFacts checks;
  const contract::TrainingSpec& training = config_.spec.training;
  for (const auto& member : members_) {
    if (member && member->in_group && ledger_) checks.planned_steps.push_back(ledger_->target_steps());
  }
  if (!begun_ && !ended()) {
    const auto here = static_cast<int>(std::count_if(members_.begin(), members_.begin() + wanted_,
                                                     [](const auto& member) { return member.has_value(); }));
    checks.running_pods = here;
    checks.pending_pods = wanted_ - here;
    checks.pending_seconds = now_ - started_at_;
    checks.pending_reason = "rank " + missing_text() + " has not joined";
  }
  if (failure_ && stage_ == contract::JobStage::kFailed) {
    checks.failed = failed_check(failure_->reason);
    if (!checks.failed && failure_->exit_code == static_cast<int>(contract::ExitCode::kNumerical))
      checks.first_nonfinite_step_had_empty_or_partial_rank = open_step_is_uneven();
  }
  if (ledger_) {
    const double base = static_cast<double>(training.batch_per_replica.value_or(config_.spec.global_batch()));
    const double k = static_cast<double>(ledger_->config().global_batch) / base;
    checks.updates_fell_by = k;
    checks.rate_rose_by = rate_factor(training, k);
  }
  checks.warmup_loss_ratio = run_facts_.early_loss_ratio();
  return checks;
}

// Does a rank have no sample of the step that was to be committed next, or is it the short one of its epoch?
bool Coordination::open_step_is_uneven() const {
  const contract::StepPlan* plan = ledger_ ? ledger_->oldest_open() : nullptr;
  if (plan == nullptr) return false;
  for (const int rank : ledger_->group()) {
    const auto r = static_cast<std::size_t>(rank);
    if (r + 1 < plan->cuts.size() && plan->cuts[r] == plan->cuts[r + 1]) return true;
  }
  return plan->planned() < plan->global_batch;
}

// What is known of the job; the rest stays unknown, and no rule fires for it.
DiagnosisInput Coordination::diagnosis_input(const DiagnosisWindow& window) const {
  const contract::TrainingJobSpec& spec = config_.spec;
  DiagnosisInput input;
  input.limits = rule_;
  input.baseline = cost_fit_.baseline(window.mean_samples());
  if (preflight_ && preflight_->samples > 0) {
    input.baseline = Baseline{preflight_->samples, preflight_->compute_seconds, preflight_->input_seconds,
                              preflight_->step_seconds, BaselineSource::kMeasured};
  }
  input.epoch = run_facts_.epoch();
  add_sharding_facts(input.epoch);
  input.checks = check_facts();
  JobFacts& job = input.job;
  const bool kept = spec.training.global_batch || spec.training.scaling == contract::Scaling::kStrong;
  job.batch_rule = kept ? BatchRule::kGlobalKept : BatchRule::kPerRankKept;
  if (ledger_) job.global_batch = ledger_->config().global_batch;
  job.max_global_batch = spec.max_global_batch;
  job.rate_rule = rate_rule_name(spec.training);
  job.local_batch_norm = contract::has_batch_norm(spec.model) &&
                         spec.training.batch_norm.statistics == contract::BatchNormStatistics::kLocal;
  job.shares_by_speed = balancer_ && !balancer_->in_force().empty();
  job.balance_allowed = spec.balance_mode == contract::BalanceMode::kRebalance;
  job.wire_is_32_bit = true;
  job.crowded = crowded_node();
  if (preflight_ && preflight_->bus_bytes_per_second > 0) {
    job.bus_bytes_per_second = preflight_->bus_bytes_per_second;
    job.hop_seconds = preflight_->hop_seconds;
    if (preflight_->best_bus_bytes_per_second > 0) {
      job.best_bus_bytes_per_second = preflight_->best_bus_bytes_per_second;
      job.best_bucket_bytes = preflight_->best_bucket_bytes;
    }
  }
  if (preflight_ && preflight_->synthetic_step_seconds > 0)
    job.synthetic_speedup = preflight_->real_step_seconds / preflight_->synthetic_step_seconds;
  if (gradient_bytes_ > 0) job.gradient_bytes = gradient_bytes_;
  if (running_at_ && last_commit_at_ && *last_commit_at_ > *running_at_)
    job.checkpoint_share = save_s_ / (*last_commit_at_ - *running_at_);
  add_data_facts(job);
  for (const auto& member : members_) {
    RankFacts facts;
    if (member) {
      facts.threads = member->join.threads;
      if (member->join.cpu_limit > 0) facts.cpu_limit = member->join.cpu_limit;
      facts.throttled_share = member->quota.throttled_share();
      facts.device_model = member->join.device_model;
    }
    input.ranks.push_back(facts);
  }
  return input;
}

// The rank that has least says what all can have. A cache pays from the next epoch on, where there is one.
void Coordination::add_data_facts(JobFacts& job) const {
  const auto least = [](auto& fact, auto value) {
    if (value > 0 && (!fact || value < *fact)) fact = value;
  };
  for (const auto& member : members_) {
    if (!member || !member->in_group) continue;
    least(job.data_threads, member->join.data_threads);
    least(job.free_memory_bytes, member->join.free_memory_bytes);
    if (member->join.decoded_bytes > 0)
      job.decoded_bytes_per_rank = std::max(job.decoded_bytes_per_rank.value_or(0), member->join.decoded_bytes);
  }
  if (!ledger_) return;
  const std::int64_t steps_left = ledger_->target_steps() - ledger_->committed().step;
  if (steps_left * ledger_->config().global_batch <= ledger_->config().train_samples) job.decoded_bytes_per_rank.reset();
}

// A rank takes as many cores as it has threads, but no more than its limit.
// Ranks that compute at once must have been seen to be slower than one alone: threads that mostly wait crowd nobody.
std::optional<CrowdedNode> Coordination::crowded_node() const {
  constexpr double kSlowerTogether = 1.15;
  const bool comparable = preflight_ && preflight_->samples > 0 && config_.spec.training.batch_per_replica;
  if (!comparable || preflight_->share_compute_seconds < kSlowerTogether * preflight_->compute_seconds)
    return std::nullopt;
  std::map<std::string, CrowdedNode> nodes;
  for (const auto& member : members_) {
    if (!member || !member->in_group || member->join.cores <= 0) continue;
    CrowdedNode& node = nodes[member->join.node];
    const double threads = member->join.threads, limit = member->join.cpu_limit;
    node.wanted += limit > 0 ? std::min(threads, limit) : threads;
    node.cores = member->join.cores;
    node.node = member->join.node;
  }
  std::optional<CrowdedNode> worst;
  for (const auto& [name, node] : nodes) {
    const double over = node.wanted / node.cores;
    if (over > 1 && (!worst || over > worst->wanted / worst->cores)) worst = node;
  }
  return worst;
}

}  // namespace evenkeel::trainer
