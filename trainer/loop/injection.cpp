#include "trainer/loop/injection.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

Error bad(const std::string& part) {
  return {ErrorCode::kInvalidInput, "injection \"" + part +
                                        "\": must be compute, input, step or network = seconds, or repeat-record, "
                                        "drop-gradient, wrong-integers or wrong-loss, then @rank or @rotate if "
                                        "wanted; or from = step"};
}

bool is_mistake(const std::string& what) {
  return what == "repeat-record" || what == "drop-gradient" || what == "wrong-integers" || what == "wrong-loss";
}

template <class T>
bool read(const std::string& text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<Injection::Part> Injection::parse_part(const std::string& text) {
  const std::size_t at = text.find('@');
  const std::string left = text.substr(0, at);
  const std::size_t equals = left.find('=');
  Part part;
  part.what = left.substr(0, equals);
  if (equals == std::string::npos ? !is_mistake(part.what) : is_mistake(part.what)) return bad(text);
  if (equals != std::string::npos) {
    const std::string value = left.substr(equals + 1);
    if (!read(value, part.seconds) || !(part.seconds >= 0) || part.seconds > 1e6) return bad(text);
    if (part.what != "compute" && part.what != "input" && part.what != "step" && part.what != "network" &&
        part.what != "from")
      return bad(text);
  }
  if (at == std::string::npos) return part;
  const std::string whose = text.substr(at + 1);
  if (whose == "rotate") {
    part.rank = kRotating;
  } else if (!read(whose, part.rank) || part.rank < 0) {
    return bad(text);
  }
  return part;
}

Result<Injection> Injection::parse(const std::string& text, int rank, int ranks) {
  Injection injection;
  injection.rank_ = rank;
  injection.ranks_ = ranks;
  std::int64_t from = 0;
  std::istringstream parts(text);
  for (std::string one; std::getline(parts, one, ',');) {
    EVENKEEL_ASSIGN(Part part, parse_part(one));
    if (part.what == "from") {
      from = static_cast<std::int64_t>(part.seconds);
    } else {
      part.from = from;
      injection.parts_.push_back(std::move(part));
    }
  }
  return injection;
}

bool Injection::applies(const Part& part, const char* what) const {
  if (part.what != what || step_ < part.from) return false;
  return part.rank == kEveryRank || part.rank == rank_ || (part.rank == kRotating && step_ % ranks_ == rank_);
}

double Injection::seconds(const char* what) const {
  double sum = 0;
  for (const Part& part : parts_) sum += applies(part, what) ? part.seconds : 0;
  return sum;
}

bool Injection::is_on(const char* what) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return applies(part, what); });
}

}  // namespace evenkeel::trainer
