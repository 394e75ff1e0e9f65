#include "trainer/coordinator/words.h"

#include <cmath>

namespace evenkeel::trainer {
namespace {

// Beyond it a number says nothing any more, and would not fit into a long.
constexpr double kLargest = 1e12;

double bounded(double value) {
  return std::isfinite(value) ? std::fmin(std::fmax(value, -kLargest), kLargest) : 0;
}

}  // namespace

std::string two_digits(double value) {
  const long hundredths = std::lround(bounded(value) * 100);
  const std::string cents = std::to_string(std::labs(hundredths) % 100);
  return (hundredths < 0 ? "-" : "") + std::to_string(std::labs(hundredths) / 100) + "." +
         (cents.size() < 2 ? "0" + cents : cents);
}

std::string percent(double share) {
  return std::to_string(std::lround(bounded(share) * 100)) + "%";
}

}  // namespace evenkeel::trainer
