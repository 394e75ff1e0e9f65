// Numbers as words of a sentence, the same in every message. Pure.
#pragma once

#include <string>

namespace evenkeel::trainer {

std::string two_digits(double value);  // 0.556 -> "0.56"
std::string percent(double share);     // 0.306 -> "31%"

}  // namespace evenkeel::trainer
