#include "trainer/coordinator/tuner.h"

#include <algorithm>

#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {

void Tuner::measure_anew() {
  steps_ = 0;
  samples_ = seconds_ = 0;
}

void Tuner::add(std::int64_t global_batch, double samples, double step_seconds) {
  if (rests()) return;
  if (global_batch != batch_) measure_anew();
  batch_ = global_batch;
  // A few steps until plans are compiled and buffers have grown.
  constexpr std::int64_t kSettlingSteps = 3;
  if (++steps_ <= kSettlingSteps) return;
  samples_ += samples;
  seconds_ += step_seconds;
}

void Tuner::regrouped() {
  measure_anew();
}

std::optional<BatchChange> Tuner::decide(std::int64_t global_batch, const std::optional<BatchOffer>& offer) {
  if (rests() || batch_ != global_batch || steps_ < config_.steps || rate() <= 0) return std::nullopt;
  return phase_ == Phase::kWatching ? take(global_batch, offer) : judge();
}

std::optional<BatchChange> Tuner::take(std::int64_t global_batch, const std::optional<BatchOffer>& offer) {
  if (!offer || offer->global_batch == global_batch) return std::nullopt;
  const double in_the_end = offer->predicted_loss_gain.value_or(offer->predicted_gain);
  if (std::min(offer->predicted_gain, in_the_end) < config_.least_gain) return std::nullopt;
  batch_before_ = global_batch;
  rate_before_ = rate();
  phase_ = Phase::kMeasuring;
  contract::Remedy remedy;
  remedy.action = "batch " + std::to_string(global_batch) + " -> " + std::to_string(offer->global_batch) +
                  " samples a step, learning rate by its rule";
  remedy.predicted_gain = offer->predicted_gain;
  remedy.predicted_loss_gain = offer->predicted_loss_gain;
  remedy.state = contract::RemedyState::kApplied;
  done_.push_back(remedy);
  measure_anew();
  const std::string learns =
      offer->predicted_loss_gain ? ", " + percent(in_the_end) + " in time to the same loss" : "";
  return BatchChange{offer->global_batch, "a larger batch promises " + percent(offer->predicted_gain) +
                                              " more samples/s" + learns + ": " + remedy.action};
}

std::optional<BatchChange> Tuner::judge() {
  constexpr std::size_t kMostChanges = 8;
  contract::Remedy& remedy = done_.back();
  remedy.measured_gain = rate() / rate_before_ - 1;
  if (*remedy.measured_gain >= config_.give_back_below * remedy.predicted_gain) {
    phase_ = done_.size() < kMostChanges ? Phase::kWatching : Phase::kOver;
    measure_anew();
    return std::nullopt;
  }
  phase_ = Phase::kOver;
  remedy.state = contract::RemedyState::kReverted;
  return BatchChange{batch_before_, "the larger batch gave " + percent(*remedy.measured_gain) + " instead of " +
                                        percent(remedy.predicted_gain) + ": it is taken back"};
}

}  // namespace evenkeel::trainer
