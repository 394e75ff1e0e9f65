// Slowness and mistakes on purpose, for tests, benchmarks and the demo's scenarios: what is injected is known, and
// whoever diagnoses does not see it. Off unless asked for. Pure but for the sleeping, which the caller does.
//
// Text: WHAT=SECONDS[@RANK | @rotate], separated by commas; e.g. "compute=0.001,from=50,compute=0.001@2"
//   compute   in forward, for each sample          input     while reading, for each sample
//   step      in forward, once a step              network   in each reduction
//   from=N    what comes after it begins with step N of the job
// Mistakes that the checks must find, without "=SECONDS": "repeat-record@1,drop-gradient@2"
//   repeat-record   once, in the first step that has two samples: one is read twice, another is not
//   drop-gradient   in every reduction, those before the first step too: the rank takes part with zeros
//   wrong-integers, wrong-loss   in the pre-flight alone
// Without a rank it is for all of them; @rotate: another rank each step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace evenkeel::trainer {

class Injection {
 public:
  Injection() = default;
  // kInvalidInput naming the part. `ranks`: of the job, for @rotate.
  static base::Result<Injection> parse(const std::string& text, int rank, int ranks);

  bool any() const { return !parts_.empty(); }
  // Of the job; steps before the first one (a pre-flight) are 0.
  void set_step(std::int64_t step) { step_ = step; }
  // Seconds to sleep in the present step.
  double compute_seconds(std::int64_t samples) const { return seconds("compute") * static_cast<double>(samples); }
  double once_seconds() const { return seconds("step"); }
  double input_seconds(std::int64_t samples) const { return seconds("input") * static_cast<double>(samples); }
  double network_seconds() const { return seconds("network"); }
  // True once: the share of the present step is to hold a record twice.
  bool repeats_record(std::int64_t samples) {
    const bool now = step_ > 0 && samples > 1 && !repeated_ && is_on("repeat-record");
    repeated_ = repeated_ || now;
    return now;
  }
  bool drops_gradient() const { return is_on("drop-gradient"); }
  bool falsifies_integers() const { return is_on("wrong-integers"); }
  bool falsifies_loss() const { return is_on("wrong-loss"); }

 private:
  static constexpr int kEveryRank = -1, kRotating = -2;
  struct Part {
    std::string what;
    double seconds = 0;
    int rank = kEveryRank;
    std::int64_t from = 0;
  };
  static base::Result<Part> parse_part(const std::string& text);
  bool applies(const Part& part, const char* what) const;
  double seconds(const char* what) const;
  bool is_on(const char* what) const;

  std::vector<Part> parts_;
  int rank_ = 0, ranks_ = 1;
  std::int64_t step_ = 0;
  bool repeated_ = false;
};

}  // namespace evenkeel::trainer
