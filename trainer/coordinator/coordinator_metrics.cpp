#include "trainer/coordinator/coordinator_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include "contract/exit_codes.h"
#include "contract/metrics.h"

namespace evenkeel::trainer {
namespace {

constexpr std::size_t kRecentSteps = 20;  // as the report's loss

std::string full(const std::string& name) {
  return "evenkeel_job_" + name;
}

}  // namespace

CoordinatorMetrics::Gauges& CoordinatorMetrics::gauge(const std::string& name) {
  return prometheus::BuildGauge()
      .Name(full(name))
      .Help(contract::metric_info(full(name)).help)
      .Register(*registry_);
}

prometheus::Family<prometheus::Counter>& CoordinatorMetrics::counter(const std::string& name) {
  return prometheus::BuildCounter()
      .Name(full(name))
      .Help(contract::metric_info(full(name)).help)
      .Register(*registry_);
}

CoordinatorMetrics::CoordinatorMetrics(const contract::TrainerConfig& config, base::Clock& clock)
    : job_(config.job_name),
      checkpoint_every_steps_(config.spec.checkpoint.path.empty() ? 0 : config.spec.checkpoint.every_steps),
      clock_(clock),
      registry_(std::make_shared<prometheus::Registry>()),
      loss_(gauge("loss")),
      accuracy_(gauge("accuracy_ratio")),
      learning_rate_(gauge("learning_rate")),
      gradient_norm_(gauge("gradient_norm")),
      size_(gauge("checkpoint_size_bytes")),
      last_success_(gauge("checkpoint_last_success_timestamp_seconds")),
      last_step_(gauge("checkpoint_last_step")),
      interval_(gauge("checkpoint_interval_seconds")),
      nonfinite_loss_(counter("nonfinite_steps_total").Add({{"trainingjob", job_}, {"kind", "loss"}})),
      nonfinite_gradient_(
          counter("nonfinite_steps_total").Add({{"trainingjob", job_}, {"kind", "gradient"}})),
      save_failures_(
          counter("checkpoint_failures_total").Add({{"trainingjob", job_}, {"operation", "save"}})) {
  counter("checkpoint_failures_total").Add({{"trainingjob", job_}, {"operation", "restore"}});
  const contract::MetricInfo& info = contract::metric_info(full("checkpoint_duration_seconds"));
  auto& duration = prometheus::BuildHistogram().Name(info.name).Help(info.help).Register(*registry_);
  save_seconds_ = &duration.Add({{"trainingjob", job_}, {"operation", "save"}}, info.buckets);
  restore_seconds_ = &duration.Add({{"trainingjob", job_}, {"operation", "restore"}}, info.buckets);
}

void CoordinatorMetrics::on_step(const contract::StepPlan& plan, const contract::Commit& any_commit) {
  recent_.push_back({static_cast<double>(plan.planned()), any_commit.loss_sum, any_commit.correct,
                     any_commit.step_seconds});
  if (recent_.size() > kRecentSteps) recent_.pop_front();
  Step sum;
  for (const Step& step : recent_) {
    sum.samples += step.samples;
    sum.loss_sum += step.loss_sum;
    sum.correct += step.correct;
    sum.seconds += step.seconds;
  }
  if (sum.samples > 0) {
    loss_.Add({{"trainingjob", job_}, {"split", "train"}}).Set(sum.loss_sum / sum.samples);
    accuracy_.Add({{"trainingjob", job_}, {"split", "train"}}).Set(sum.correct / sum.samples);
  }
  learning_rate_.Add({{"trainingjob", job_}}).Set(any_commit.learning_rate);
  gradient_norm_.Add({{"trainingjob", job_}}).Set(any_commit.gradient_norm);
  if (checkpoint_every_steps_ > 0) {
    interval_.Add({{"trainingjob", job_}})
        .Set(static_cast<double>(checkpoint_every_steps_) * sum.seconds /
             static_cast<double>(recent_.size()));
  }
}

void CoordinatorMetrics::on_evaluated(const contract::Evaluated& evaluated) {
  if (evaluated.samples <= 0) return;
  const double samples = static_cast<double>(evaluated.samples);
  loss_.Add({{"trainingjob", job_}, {"split", "eval"}}).Set(evaluated.loss_sum / samples);
  accuracy_.Add({{"trainingjob", job_}, {"split", "eval"}})
      .Set(static_cast<double>(evaluated.correct) / samples);
}

void CoordinatorMetrics::on_checkpoint(const contract::Checkpointed& checkpoint) {
  if (!checkpoint.error.empty()) return save_failures_.Increment();
  save_seconds_->Observe(checkpoint.seconds);
  size_.Add({{"trainingjob", job_}}).Set(static_cast<double>(checkpoint.bytes));
  last_success_.Add({{"trainingjob", job_}}).Set(base::seconds(clock_.wall_now().time_since_epoch()));
  last_step_.Add({{"trainingjob", job_}}).Set(static_cast<double>(checkpoint.step));
}

void CoordinatorMetrics::on_restored(double seconds) {
  restore_seconds_->Observe(seconds);
}

// A non-finite step is the end of the attempt; what was not finite is in its sentence.
void CoordinatorMetrics::on_failure(const contract::LastFailure& failure) {
  if (failure.exit_code != static_cast<int>(contract::ExitCode::kNumerical)) return;
  if (failure.reason.find("ParameterDrift") != std::string::npos) return;
  (failure.reason.find("loss") != std::string::npos ? nonfinite_loss_ : nonfinite_gradient_).Increment();
}

}  // namespace evenkeel::trainer
