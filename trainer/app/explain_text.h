// The explanation for a terminal: the waterfall as bars, the verdict, remedies with their gains. Pure.
#pragma once

#include <string>

#include "contract/report.h"

namespace evenkeel::trainer {

std::string explain_text(const contract::JobReport& report);

}  // namespace evenkeel::trainer
