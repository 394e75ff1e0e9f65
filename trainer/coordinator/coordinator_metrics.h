// The job's own series (contract/metrics.h, MetricSource::kCoordinator): rank 0 may die, so they live here.
// Fed by Coordination as its observer; read by /metrics. Thread safe as prometheus-cpp's registry is.
#pragma once

#include <prometheus/registry.h>

#include <deque>
#include <memory>
#include <string>

#include "base/clock.h"
#include "contract/trainer_config.h"
#include "trainer/coordinator/coordination.h"

namespace evenkeel::trainer {

class CoordinatorMetrics : public CoordinationObserver {
 public:
  CoordinatorMetrics(const contract::TrainerConfig& config, base::Clock& clock);

  std::shared_ptr<prometheus::Registry> registry() const { return registry_; }

  void on_step(const contract::StepPlan& plan, const contract::Commit& any_commit) override;
  void on_evaluated(const contract::Evaluated& evaluated) override;
  void on_checkpoint(const contract::Checkpointed& checkpoint) override;
  void on_restored(double seconds) override;
  void on_failure(const contract::LastFailure& failure) override;

 private:
  using Gauges = prometheus::Family<prometheus::Gauge>;
  Gauges& gauge(const std::string& name);
  prometheus::Family<prometheus::Counter>& counter(const std::string& name);

  // Of the last steps, for means over their samples.
  struct Step {
    double samples = 0, loss_sum = 0, correct = 0, seconds = 0;
  };

  std::string job_;
  std::int64_t checkpoint_every_steps_;  // 0: none are written
  base::Clock& clock_;
  std::shared_ptr<prometheus::Registry> registry_;
  // A gauge of what has not happened is absent: its series is added when it first does.
  Gauges &loss_, &accuracy_, &learning_rate_, &gradient_norm_, &size_, &last_success_, &last_step_,
      &interval_;
  // Counters are born at zero.
  prometheus::Counter &nonfinite_loss_, &nonfinite_gradient_, &save_failures_;
  prometheus::Histogram *save_seconds_, *restore_seconds_;
  std::deque<Step> recent_;
};

}  // namespace evenkeel::trainer
