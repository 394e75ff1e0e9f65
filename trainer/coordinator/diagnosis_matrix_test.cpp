// The confusion matrix, simulated: causes of four strengths in step times with noise; the diagnosis sees the
// times and nothing of what was injected. Thresholds move only together with this table.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>

#include "trainer/coordinator/balancer_fixture.h"
#include "trainer/coordinator/diagnosis.h"

namespace evenkeel::trainer {
namespace {

constexpr Baseline kBaseline{32, 0.096, 0.002, 0.100, BaselineSource::kMeasured};
constexpr double kNoise = 0.03;

enum class Cause { kHealthy, kBatch, kInput, kNetwork, kShards, kStraggler, kRotating };
const std::map<Cause, std::string> kNames = {
    {Cause::kHealthy, "ScalingFine"},     {Cause::kBatch, "BatchNotScaled"},
    {Cause::kInput, "InputBound"},        {Cause::kNetwork, "CommunicationBound"},
    {Cause::kShards, "ImbalancedShards"}, {Cause::kStraggler, "Straggler"},
    {Cause::kRotating, "VariableWork"},
};

// A job of four ranks with `lost` of each step's time lost for the causes, beside 4 % for the network.
class Injected {
 public:
  Injected(std::set<Cause> causes, double lost, std::uint64_t seed)
      : causes_(std::move(causes)), lost_(lost), random_(seed), slow_(seed % 4) {}

  StepWork step(std::int64_t number) {
    const double n = has(Cause::kBatch) ? kBaseline.samples / 4 : kBaseline.samples;
    const double tau = kBaseline.compute_seconds / kBaseline.samples;
    const double healthy = n * tau + 0.002 + 0.004;
    const double total = healthy / (1 - lost_ * static_cast<double>(causes_.size() - has(Cause::kHealthy)));
    const double more = lost_ * total;  // seconds for each cause
    StepWork work;
    work.step = number;
    double slowest = 0;
    for (std::size_t r = 0; r < 4; ++r) {
      RankWork rank;
      rank.samples = n;
      double compute = n * tau, input = 0.002;
      if (has(Cause::kBatch)) compute += more;
      if (has(Cause::kInput)) input += more;
      const bool is_slow = r == slow_;
      // The slowest is later by x: capacity and waiting together are lost to it.
      if (has(Cause::kStraggler) && is_slow) compute += more;
      if (has(Cause::kRotating) && r == static_cast<std::size_t>(number) % 4) compute += more * 4 / 3;
      if (has(Cause::kShards)) {
        // n_r = mean + d on one, mean - d/3 on the others: the wait is d samples long.
        const double d = more / tau;
        rank.samples = is_slow ? n + d : n - d / 3;
        compute += (rank.samples - n) * tau;
      }
      rank.compute_seconds = compute * random_(kNoise);
      rank.input_seconds = input * random_(kNoise);
      slowest = std::max(slowest, rank.own_seconds());
      work.ranks.push_back(rank);
    }
    work.step_seconds = slowest + (0.004 + (has(Cause::kNetwork) ? more : 0)) * random_(kNoise);
    return work;
  }

  bool has(Cause cause) const { return causes_.contains(cause); }

 private:
  std::set<Cause> causes_;
  double lost_;
  Normal random_;
  std::size_t slow_;
};

contract::Diagnosis diagnosis_of(const std::set<Cause>& causes, double lost, std::uint64_t seed) {
  Injected job(causes, lost, seed);
  DiagnosisWindow window;
  for (std::int64_t step = 1; step <= 110; ++step) window.add(job.step(step), false);
  DiagnosisInput input;
  input.baseline = kBaseline;
  // A job says which rule its batch follows; it is said alike whatever is wrong.
  input.job.batch_rule = BatchRule::kGlobalKept;
  return diagnose(window, input).diagnosis;
}

constexpr Cause kCauses[] = {Cause::kBatch, Cause::kInput, Cause::kNetwork, Cause::kShards,
                             Cause::kStraggler};
constexpr double kStrengths[] = {0.15, 0.25, 0.40, 0.60};

TEST(DiagnosisMatrix, five_causes_of_four_strengths_are_named) {
  std::map<Cause, std::map<std::string, int>> matrix;
  int right = 0, all = 0;
  for (const Cause cause : kCauses) {
    for (const double strength : kStrengths) {
      for (const std::uint64_t seed : {101u, 202u, 303u}) {
        const contract::Diagnosis found = diagnosis_of({cause}, strength, seed);
        ++matrix[cause][found.verdict];
        ++all;
        right += found.verdict == kNames.at(cause);
        EXPECT_EQ(found.verdict, kNames.at(cause))
            << "strength " << strength << ", seed " << seed << ": " << found.message;
      }
    }
  }
  for (const auto& [cause, row] : matrix) {
    std::printf("%-20s", kNames.at(cause).c_str());
    for (const auto& [verdict, count] : row) std::printf(" %s %d", verdict.c_str(), count);
    std::printf("\n");
  }
  EXPECT_EQ(all, 60);
  EXPECT_GE(right, 58);
}

TEST(DiagnosisMatrix, healthy_jobs_scale_fine) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const contract::Diagnosis found = diagnosis_of({Cause::kHealthy}, 0, seed);
    EXPECT_EQ(found.verdict, "ScalingFine") << found.message;
  }
}

TEST(DiagnosisMatrix, ranks_that_take_turns_are_varying_work) {
  for (const double strength : kStrengths) {
    for (const std::uint64_t seed : {7u, 8u, 9u}) {
      const contract::Diagnosis found = diagnosis_of({Cause::kRotating}, strength, seed);
      EXPECT_EQ(found.verdict, "VariableWork") << strength << ": " << found.message;
    }
  }
}

TEST(DiagnosisMatrix, of_two_causes_both_are_named) {
  int pairs = 0;
  for (std::size_t a = 0; a < std::size(kCauses); ++a) {
    for (std::size_t b = a + 1; b < std::size(kCauses); ++b) {
      // Shares and speed are one loss, which has one name; a straggler with unequal shares is neither alone.
      if (kCauses[a] == Cause::kShards && kCauses[b] == Cause::kStraggler) continue;
      const contract::Diagnosis found = diagnosis_of({kCauses[a], kCauses[b]}, 0.2, 11);
      for (const Cause cause : {kCauses[a], kCauses[b]}) {
        const std::string& name = kNames.at(cause);
        const bool named = found.verdict == name || found.message.find("also " + name) != std::string::npos;
        EXPECT_TRUE(named) << name << " is not in " << found.verdict << ": " << found.message;
      }
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 9);
}

}  // namespace
}  // namespace evenkeel::trainer
