// The pictures of the explanation, each one an <svg> element; empty where there is nothing to draw. Colours
// are classes of the page. Pure.
#pragma once

#include <string>

#include "contract/report.h"

namespace evenkeel::trainer {

std::string escape_html(const std::string& text);

std::string waterfall_svg(const contract::JobReport& report);
// By rank: computing, waiting for data and for the slowest, communication, over the steps.
std::string phases_svg(const contract::JobReport& report);
// Samples by rank, as a share of the step, over the steps.
std::string shares_svg(const contract::JobReport& report);
// By rank and time: how much of the step the others waited for this rank.
std::string waited_for_svg(const contract::JobReport& report);

}  // namespace evenkeel::trainer
