// The larger batch, tried: taken where its price promises enough and the user's limit allows it, measured, and
// taken back where it does not give half of what was promised; then that was the last one. Where it did, the next
// one may follow: what a larger batch is worth to the model grows while it learns. Owned by Coordination, which
// feeds it and carries its decisions out at a step boundary. Pure: time is step numbers and rates that are handed
// in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/report.h"

namespace evenkeel::trainer {

struct TunerConfig {
  bool applies = false;       // tune.mode is Apply
  double least_gain = 0.05;   // in samples/s, and in time to the same loss; less is not worth a change of the batch
  int steps = 20;             // measured before and after
  double give_back_below = 0.5;  // measured gain over predicted gain
};

// A batch that would be faster, as priced (remedies.h).
struct BatchOffer {
  std::int64_t global_batch = 0;
  double predicted_gain = 0;  // in samples/s: 0.5 is half as many again
  std::optional<double> predicted_loss_gain = {};  // in time to the same loss, where the noise scale is known
};

struct BatchChange {
  std::int64_t global_batch = 0;
  std::string reason;  // one sentence
};

class Tuner {
 public:
  explicit Tuner(TunerConfig config = {}) : config_(config) {}

  // A committed step that neither evaluated nor saved.
  void add(std::int64_t global_batch, double samples, double step_seconds);
  // Asked after every add(): the batch that is to be in force from the next plan on. `offer`: the best that is
  // allowed now, if any. A change is returned once and counts as carried out.
  std::optional<BatchChange> decide(std::int64_t global_batch, const std::optional<BatchOffer>& offer);
  // The ranks are others now: a measurement under way begins anew.
  void regrouped();
  // What was done, for the report.
  const std::vector<contract::Remedy>& done() const { return done_; }
  // Nothing will be decided any more: no offer need be priced.
  bool rests() const { return !config_.applies || phase_ == Phase::kOver; }

 private:
  enum class Phase { kWatching, kMeasuring, kOver };
  double rate() const { return seconds_ > 0 ? samples_ / seconds_ : 0; }
  void measure_anew();
  std::optional<BatchChange> take(std::int64_t global_batch, const std::optional<BatchOffer>& offer);
  std::optional<BatchChange> judge();

  TunerConfig config_;
  Phase phase_ = Phase::kWatching;
  std::int64_t batch_ = 0;  // of the steps that are being added up
  std::int64_t batch_before_ = 0;
  double rate_before_ = 0;
  std::int64_t steps_ = 0;
  double samples_ = 0, seconds_ = 0;
  std::vector<contract::Remedy> done_;
};

}  // namespace evenkeel::trainer
