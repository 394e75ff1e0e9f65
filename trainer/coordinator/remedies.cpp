#include "trainer/coordinator/remedies.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {
namespace {

using contract::Remedy;
using contract::RemedyState;
using Offer = std::optional<PricedRemedy>;

constexpr double kLeastGain = 0.02;
constexpr int kLargestFactor = 16;  // of the batch
constexpr std::size_t kMostRemedies = 16;

std::string whole(double value) {
  return std::to_string(std::llround(value));
}

double gain_of_step(double now, double then) {
  return then > 0 ? now / then - 1 : 0;
}

PricedRemedy offer(RemedyKind kind, std::string action, double gain, RemedyState state,
                   std::int64_t amount = 0) {
  return {kind, {std::move(action), gain, std::nullopt, state, std::nullopt}, amount};
}

// Samples to the same loss grow with 1 + B / B_noise, so that a gain in samples/s is not all gain.
std::optional<double> loss_gain(double speed_gain, double batch, double factor,
                                const std::optional<NoiseScale>& noise) {
  if (!noise) return std::nullopt;
  const double scale = noise->batch();
  return (1 + speed_gain) * (1 + batch / scale) / (1 + factor * batch / scale) - 1;
}

// The factor of two that pays best within the limit; beyond it the first that pays, as one that is not
// allowed.
Offer larger_batch(const RemedyInput& in) {
  const Waterfall& w = *in.findings.waterfall;
  if (!w.fixed || in.job.global_batch <= 0 || !in.job.max_global_batch) return std::nullopt;
  const double batch = static_cast<double>(in.job.global_batch);
  int factor = 2;
  const bool allowed = 2 * in.job.global_batch <= *in.job.max_global_batch;
  // Each doubling must pay for itself: larger batches learn less from a sample.
  for (int next = 4; next <= kLargestFactor; next *= 2) {
    if (allowed && next * in.job.global_batch > *in.job.max_global_batch) break;
    if (gain_of_batch(w, next) - gain_of_batch(w, factor) < 0.05) break;
    const auto now = loss_gain(gain_of_batch(w, factor), batch, factor, in.noise);
    const auto then = loss_gain(gain_of_batch(w, next), batch, next, in.noise);
    if (now && *then <= *now) break;
    factor = next;
  }
  const std::string rule = in.job.rate_rule.empty() ? "its rule" : in.job.rate_rule;
  const double gain = gain_of_batch(w, factor);
  PricedRemedy remedy =
      offer(RemedyKind::kLargerBatch,
            "batch x" + std::to_string(factor) + ": " + whole(batch) + " -> " + whole(batch * factor) +
                " samples a step, learning rate by " + rule,
            gain, allowed ? RemedyState::kProposed : RemedyState::kNotAllowed, factor * in.job.global_batch);
  remedy.remedy.predicted_loss_gain = loss_gain(gain, batch, factor, in.noise);
  return remedy;
}

// Where a rank waits for data, reading takes all of the step; twice the threads read in half of it, and what
// the rest of the step covers is not waited for.
Offer data_threads(const RemedyInput& in) {
  const Waterfall& w = *in.findings.waterfall;
  if (!in.job.data_threads || *in.job.data_threads < 1 || w.input < 0.05 * w.step_seconds)
    return std::nullopt;
  const int threads = 2 * *in.job.data_threads;
  const double covered = w.step_seconds - w.input;
  const double waits = std::max(0.0, w.step_seconds / 2 - covered);
  bool spare = true;
  for (const RankFacts& rank : in.ranks) {
    if (rank.cpu_limit && *rank.cpu_limit > 0 &&
        rank.threads.value_or(1) + threads > std::ceil(*rank.cpu_limit))
      spare = false;
  }
  return offer(RemedyKind::kDataThreads,
               "data threads " + std::to_string(*in.job.data_threads) + " -> " + std::to_string(threads) +
                   (spare ? "" : " (no spare core under the CPU limit)"),
               gain_of_step(w.step_seconds, covered + waits),
               spare ? RemedyState::kProposed : RemedyState::kNotAllowed, threads);
}

Offer cache(const RemedyInput& in) {
  const Waterfall& w = *in.findings.waterfall;
  if (!in.job.decoded_bytes_per_rank || !in.job.free_memory_bytes) return std::nullopt;
  if (*in.job.decoded_bytes_per_rank > *in.job.free_memory_bytes) return std::nullopt;
  return offer(RemedyKind::kCache,
               "cache in memory: " + whole(*in.job.decoded_bytes_per_rank / (1 << 20)) + " MiB a rank",
               gain_of_step(w.step_seconds, w.step_seconds - w.input), RemedyState::kProposed);
}

Offer new_shares(const RemedyInput& in) {
  const Waterfall& w = *in.findings.waterfall;
  std::vector<std::optional<double>> costs;
  double slowest_now = 0, total = 0;
  for (const RankFinding& rank : in.findings.ranks) {
    costs.emplace_back();
    if (!rank.present) continue;
    if (rank.samples_per_step <= 0) return std::nullopt;
    costs.back() = rank.busy_seconds / rank.samples_per_step;
    slowest_now = std::max(slowest_now, rank.busy_seconds);
    total += rank.samples_per_step;
  }
  const auto samples = static_cast<std::int64_t>(std::llround(total));
  if (w.ranks < 2 || samples < 1) return std::nullopt;
  const MinMaxShares best = min_max_shares(samples, costs, in.limits);
  double slowest_then = 0;
  for (std::size_t r = 0; r < costs.size(); ++r)
    slowest_then = std::max(slowest_then, static_cast<double>(best.shares[r]) * costs[r].value_or(0));
  return offer(RemedyKind::kShares, "shares by speed",
               gain_of_step(w.step_seconds, w.step_seconds - slowest_now + slowest_then),
               in.job.balance_allowed ? RemedyState::kProposed : RemedyState::kNotAllowed);
}

// Where the batch is kept, more ranks make each share smaller and the ring longer.
Offer fewer_ranks(const RemedyInput& in) {
  const Waterfall& w = *in.findings.waterfall;
  if (!w.fixed || in.job.batch_rule != BatchRule::kGlobalKept || w.ranks < 2) return std::nullopt;
  const double per_sample = *w.useful + w.capacity + w.wait + w.input;  // of N ranks' share
  double best_gain = 0, best = w.ranks;
  for (double n = 1; n < w.ranks; ++n) {
    const double ring = ((n - 1) / n) / ((w.ranks - 1) / w.ranks);
    const double gain = gain_of_step(w.step_seconds, per_sample * w.ranks / n + *w.fixed + w.rest * ring);
    if (gain > best_gain) {
      best_gain = gain;
      best = n;
    }
  }
  return offer(RemedyKind::kFewerRanks, whole(best) + " ranks instead of " + whole(w.ranks), best_gain,
               RemedyState::kProposed, std::llround(best));
}

Offer short_wire(const RemedyInput& in) {
  const Waterfall& w = *in.findings.waterfall;
  if (!in.job.wire_is_32_bit.value_or(false) || !in.job.gradient_bytes || w.ranks < 2) return std::nullopt;
  if (in.job.bus_bytes_per_second.value_or(0) <= 0) return std::nullopt;
  // Half the bytes take half of their time; the hops of the ring take as long as before.
  const double bytes_s = 2 * (w.ranks - 1) / w.ranks * *in.job.gradient_bytes / *in.job.bus_bytes_per_second;
  const double saved = std::clamp(w.rest, 0.0, bytes_s) / 2;
  return offer(RemedyKind::kShortWire, "gradients as 16 bit on the wire",
               gain_of_step(w.step_seconds, w.step_seconds - saved),
               RemedyState::kProposed);
}

Offer bucket(const RemedyInput& in) {
  const Waterfall& w = *in.findings.waterfall;
  if (!in.job.bus_bytes_per_second || !in.job.best_bus_bytes_per_second || w.rest <= 0) return std::nullopt;
  const double ratio = *in.job.bus_bytes_per_second / *in.job.best_bus_bytes_per_second;
  std::string action = "the bucket size that was measured as the fastest";
  if (in.job.best_bucket_bytes) action = "buckets of " + whole(*in.job.best_bucket_bytes / 1024) + " KiB, measured as the fastest";
  return offer(RemedyKind::kBucket, action,
               gain_of_step(w.step_seconds, w.step_seconds - w.rest * (1 - ratio)), RemedyState::kProposed);
}

}  // namespace

double gain_of_batch(const Waterfall& w, double factor) {
  // The fixed term knows what is lost against the baseline, which paid its own fixed cost too.
  const double once = w.once.value_or(w.fixed.value_or(0)) + w.rest;
  return factor * w.step_seconds / ((w.step_seconds - once) * factor + once) - 1;
}

double gain_in_the_end(const Remedy& remedy) {
  const double speed = remedy.measured_gain.value_or(remedy.predicted_gain);
  if (!remedy.predicted_loss_gain) return speed;
  // What the model learns less from a sample stays as predicted.
  return (1 + speed) * (1 + *remedy.predicted_loss_gain) / (1 + remedy.predicted_gain) - 1;
}

std::vector<PricedRemedy> price_remedies(const RemedyInput& in) {
  std::vector<PricedRemedy> priced;
  if (!in.findings.waterfall || in.findings.waterfall->step_seconds <= 0) return priced;
  for (const auto price : {larger_batch, data_threads, cache, new_shares, fewer_ranks, short_wire, bucket}) {
    Offer one = price(in);
    if (one && one->remedy.predicted_gain >= kLeastGain) priced.push_back(std::move(*one));
  }
  std::stable_sort(priced.begin(), priced.end(), [](const PricedRemedy& a, const PricedRemedy& b) {
    return gain_in_the_end(a.remedy) > gain_in_the_end(b.remedy);
  });
  return priced;
}

std::vector<Remedy> all_remedies(const std::vector<PricedRemedy>& priced, const std::vector<Remedy>& done) {
  // One list, best first: by what was measured where it was.
  std::vector<Remedy> all = done;
  for (const PricedRemedy& one : priced) {
    const bool said = one.kind == RemedyKind::kShares && !done.empty();
    if (!said) all.push_back(one.remedy);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Remedy& a, const Remedy& b) { return gain_in_the_end(a) > gain_in_the_end(b); });
  if (all.size() > kMostRemedies) all.resize(kMostRemedies);
  return all;
}

}  // namespace evenkeel::trainer
