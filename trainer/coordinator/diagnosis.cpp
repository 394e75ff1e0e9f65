#include "trainer/coordinator/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/coordinator/imbalance.h"
#include "trainer/coordinator/words.h"

namespace evenkeel::trainer {
namespace {

constexpr char kMeasuring[] = "Measuring";
constexpr char kScalingFine[] = "ScalingFine";

// A kind of loss: the rules that may name it, in this order, and what it is called when none does.
struct Family {
  const char* loss;
  double share = 0;  // of the step's time
  std::vector<Rule> rules;
  const char* fallback;
  std::string sentence;
};

// The shares fit the ranks' speed: what slower hardware lacks is still lost, and nobody waits for it.
bool settled(const Case& c) {
  return c.job.shares_by_speed && imbalance_ratio(c.signals.own) <= c.limits.imbalance_above;
}

std::vector<Family> families(const Case& c) {
  const contract::Losses& l = c.losses;
  const double fixed = l.fixed_cost.value_or(0), input = l.input_wait.value_or(0);
  const double network = l.communication.value_or(0);
  const double imbalance = settled(c) ? c.waterfall.wait / c.waterfall.step_seconds : l.imbalance.value_or(0);
  std::vector<Family> all{
      {"fixed cost",
       fixed,
       {d01_batch_not_scaled, d02_too_little_work, d07_cpu_starved, d07_stopped_ranks, d07_no_core},
       c.job.batch_rule == BatchRule::kPerRankKept ? "TooLittleWork" : "BatchNotScaled",
       percent(fixed) + " of each step does not shrink with a rank's samples, which are " +
           std::to_string(std::llround(c.signals.mean_samples()))},
      {"waiting for data",
       input,
       {d07_cpu_starved, d06_input_bound},
       "InputBound",
       percent(input) + " of each step is waiting for data"},
      {"imbalance",
       imbalance,
       {d05_imbalanced_shares, d12_heterogeneous_devices, d07_no_core_in_turns, d10_straggler, d07_stopped_ranks,
        d11_variable_work},
       "VariableWork",
       percent(imbalance) +
           " of each step is waiting for the slowest rank, and no single rank is behind the waiting"},
      {"communication",
       network,
       {d10_stopped_rank, d07_stopped_ranks, d07_no_core_in_reductions, d08_slow_transport,
        d09_communication_by_design},
       "CommunicationBound",
       percent(network) + " of each step is exposed communication"},
      {"checkpoints", c.job.checkpoint_share.value_or(0), {d30_checkpoint_stall}, "CheckpointStall", ""}};
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return all;
}

Fired name_of(const Family& family, const Case& c) {
  for (const Rule rule : family.rules) {
    if (const auto fired = rule(c)) return *fired;
  }
  return {"", family.fallback, family.sentence};
}

std::vector<RankFinding> rank_findings(const Signals& s, std::size_t ranks) {
  std::vector<RankFinding> findings(ranks);
  for (RankFinding& rank : findings) rank.present = false;
  double total = 0;
  for (const double samples : s.samples) total += samples;
  for (std::size_t i = 0; i < s.ranks(); ++i) {
    findings[s.present[i]] = {s.samples[i], s.own[i], total > 0 ? s.samples[i] / total : 0, s.relative[i],
                              true};
  }
  return findings;
}

std::string no_verdict(const DiagnosisWindow& window) {
  return "no window yet: " + std::to_string(window.size()) + " of at least " +
         std::to_string(window.limits().min_steps) + " steps and " + two_digits(window.seconds()) + " of " +
         two_digits(window.limits().min_seconds) + " s after the first " +
         std::to_string(window.limits().warmup_steps) + " steps";
}

std::string nothing_is_wrong(const Case& c, const Family& largest) {
  const std::string loss =
      "the largest loss is " + std::string(largest.loss) + ", " + percent(largest.share) + " of each step";
  if (c.signals.ranks() < 2) return "one rank: there is nothing to compare; " + loss;
  const std::size_t slowest = c.signals.slowest();
  if (settled(c) && c.signals.slowest_relative() < c.limits.relative_below) {
    return "the shares fit the ranks' speed: rank " + std::to_string(c.signals.present[slowest]) +
           " runs at " + two_digits(c.signals.slowest_relative()) + " of the others, and the " +
           percent(c.waterfall.capacity / c.waterfall.step_seconds) +
           " of each step that it lacks are not to be had by sharing; " + loss;
  }
  return "no straggler: rank " + std::to_string(c.signals.present[slowest]) + " is the slowest, at " +
         two_digits(c.signals.slowest_relative()) + " of the others; " + loss;
}

// The verdict of the largest loss; a second one is named beside it.
void judge(const Case& c, Findings& found) {
  const std::vector<Family> all = families(c);
  const double least = c.limits.loss_at_least;
  contract::Diagnosis& diagnosis = found.diagnosis;
  if (all.front().share < least) {
    const auto stall = d30_checkpoint_stall(c);
    diagnosis.verdict = stall ? stall->verdict : kScalingFine;
    diagnosis.message = stall ? stall->sentence : nothing_is_wrong(c, all.front());
    if (stall) found.fired.push_back(*stall);
    return;
  }
  const Fired first = name_of(all[0], c);
  diagnosis.verdict = first.verdict;
  diagnosis.message = first.sentence;
  found.fired.push_back(first);
  if (all[1].share < least) return;
  const Fired second = name_of(all[1], c);
  if (second.verdict == first.verdict) return;  // two losses of one cause
  diagnosis.message += "; also " + second.verdict + ": " + second.sentence;
  found.fired.push_back(second);
}

// Whom the others wait for, by the verdict, or who is slow although nobody waits for it any more.
std::optional<int> straggler_of(const Signals& s, const StragglerRule& limits, const std::vector<Fired>& fired) {
  for (const Fired& rule : fired) {
    if (rule.rule == "D10" && !rule.ranks.empty()) return static_cast<int>(rule.ranks.front());
  }
  if (s.ranks() < 2 || s.slowest_relative() >= limits.relative_below) return std::nullopt;
  return static_cast<int>(s.present[s.slowest()]);
}

std::string baseline_note(const std::optional<Baseline>& baseline) {
  if (!baseline) return "; no baseline: the fixed cost is not told from useful work";
  if (baseline->source == BaselineSource::kFitted) return "; baseline fitted from shares of different size";
  return "";
}

}  // namespace

Findings diagnose(const DiagnosisWindow& window, const DiagnosisInput& input) {
  Findings found;
  found.baseline = input.baseline;
  std::optional<double> samples_per_rank;
  if (window.ready()) {
    const std::vector<StepWork> steps = window.steps();
    const Signals signals = signals_of(steps, input.job, input.limits.block_seconds);
    found.waterfall = make_waterfall(steps, input.baseline);
    found.ranks = rank_findings(signals, steps.front().ranks.size());
    found.diagnosis.losses = losses_of(*found.waterfall);
    found.balance.imbalance_ratio = imbalance_ratio(signals.own);
    if (found.waterfall->speedup)
      found.balance.scaling_efficiency = found.waterfall->speedup->reached / found.waterfall->ranks;
    samples_per_rank = signals.mean_samples();
    judge({input.job, input.ranks, signals, *found.waterfall, found.diagnosis.losses, input.limits}, found);
    found.balance.slowest_rank = straggler_of(signals, input.limits, found.fired);
  } else {
    found.diagnosis = {kMeasuring, no_verdict(window), {}, {}};
  }
  if (const auto broken = first_broken_check(input.epoch, input.checks)) {
    found.diagnosis.verdict = broken->verdict;
    found.diagnosis.message = broken->sentence;
    found.fired.insert(found.fired.begin(), *broken);
  }
  for (const Fired& note : notes(input.job, input.checks, samples_per_rank)) {
    found.diagnosis.message += "; " + note.verdict + ": " + note.sentence;
    found.fired.push_back(note);
  }
  if (window.ready()) found.diagnosis.message += baseline_note(input.baseline);
  return found;
}

Findings diagnose(const DiagnosisWindow& window, const StragglerRule& limits,
                  const std::optional<Baseline>& baseline) {
  DiagnosisInput input;
  input.limits = limits;
  input.baseline = baseline;
  return diagnose(window, input);
}

contract::WaterfallReport waterfall_report(const Waterfall& w, const std::optional<Baseline>& baseline) {
  contract::WaterfallReport report;
  report.ranks = static_cast<int>(w.ranks);
  report.step_seconds = w.step_seconds;
  report.residue_seconds = w.residue;
  if (baseline) report.baseline = baseline->source == BaselineSource::kFitted ? "fitted" : "measured";
  const auto add = [&](const char* name, double seconds, std::optional<double> ranks) {
    report.terms.push_back({name, seconds, ranks});
  };
  if (!w.speedup) {
    add("usefulAndFixed", w.useful_and_fixed, std::nullopt);
    add("capacity", w.capacity, std::nullopt);
    add("wait", w.wait, std::nullopt);
    add("input", w.input, std::nullopt);
    add("rest", w.rest, std::nullopt);
    return report;
  }
  report.speedup = w.speedup->reached;
  const double ranks_per_second = w.ranks / w.step_seconds;
  add("useful", *w.useful, std::nullopt);
  add("fixed", *w.fixed, w.speedup->fixed);
  add("capacity", w.capacity, ranks_per_second * w.capacity);
  add("wait", w.wait, ranks_per_second * w.wait);
  add("input", w.input, w.speedup->input);
  add("rest", w.rest, w.speedup->communication);
  return report;
}

}  // namespace evenkeel::trainer
