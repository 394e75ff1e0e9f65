#include "contract/worst_exit.h"

#include <algorithm>
#include <array>

#include "contract/exit_codes.h"

namespace evenkeel::contract {
namespace {

constexpr std::array kPermanent{ExitCode::kNumerical, ExitCode::kBadData, ExitCode::kDeviceMissing,
                                ExitCode::kMismatch, ExitCode::kBadConfiguration};  // the worst last
constexpr std::array kMild{ExitCode::kDone, ExitCode::kStopped, ExitCode::kTryAgain, ExitCode::kIo};
constexpr int kSignalBase = 128;

template <class List>
int place_in(const List& list, int code) {
  const auto at = std::ranges::find(list, static_cast<ExitCode>(code));
  return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

int severity(int code) {
  constexpr int kKilled = static_cast<int>(kMild.size());
  constexpr int kDefect = kKilled + 1;
  if (const int at = place_in(kMild, code); at >= 0) return at;
  if (const int at = place_in(kPermanent, code); at >= 0) return kDefect + 1 + at;
  return code > kSignalBase ? kKilled : kDefect;
}

}  // namespace

std::size_t worst_exit(std::span<const int> codes) {
  const auto worst = std::ranges::max_element(codes, {}, severity);  // the first of the greatest
  return static_cast<std::size_t>(worst - codes.begin());
}

}  // namespace evenkeel::contract
