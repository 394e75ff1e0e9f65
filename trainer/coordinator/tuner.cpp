#include "trainer/coordinator/tuner.h"

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
  if (phase_ == Phase::kWatching) {
    if (!offer || offer->predicted_gain < config_.least_gain || offer->global_batch == global_batch)
      return std::nullopt;
    batch_before_ = global_batch;
    rate_before_ = rate();
    phase_ = Phase::kMeasuring;
    done_.emplace();
    done_->action = "batch " + std::to_string(global_batch) + " -> " + std::to_string(offer->global_batch) +
                    " samples a step, learning rate by its rule";
    done_->predicted_gain = offer->predicted_gain;
    done_->state = contract::RemedyState::kApplied;
    measure_anew();
    return BatchChange{offer->global_batch, "a larger batch promises " + percent(offer->predicted_gain) +
                                                " more samples/s: " + done_->action};
  }
  phase_ = Phase::kOver;
  done_->measured_gain = rate() / rate_before_ - 1;
  if (*done_->measured_gain >= config_.give_back_below * done_->predicted_gain) return std::nullopt;
  done_->state = contract::RemedyState::kReverted;
  return BatchChange{batch_before_, "the larger batch gave " + percent(*done_->measured_gain) + " instead of " +
                                        percent(done_->predicted_gain) + ": it is taken back"};
}

}  // namespace evenkeel::trainer
