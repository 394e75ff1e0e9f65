// The explanation as one page: pictures as SVG inside, no script, nothing from the network. All text of the
// report is escaped. Pure.
#pragma once

#include <string>

#include "contract/report.h"

namespace evenkeel::trainer {

std::string explain_html(const contract::JobReport& report);

}  // namespace evenkeel::trainer
