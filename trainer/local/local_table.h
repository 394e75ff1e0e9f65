// What a person sees of a running job: a table that is redrawn on a terminal, one line now and then
// elsewhere. Pure.
#pragma once

#include <string>

#include "contract/report.h"

namespace evenkeel::trainer {

// Several lines: the job, then one line for each rank.
std::string table_text(const contract::JobReport& report, double elapsed_seconds);
// One line.
std::string line_text(const contract::JobReport& report, double elapsed_seconds);
// At the end.
std::string summary_text(const contract::JobReport& report, double elapsed_seconds, int exit_code);

// Goes back over the last text that was drawn, so that the next one takes its place.
class Redraw {
 public:
  // What to write to the terminal to see `text` instead of the last one.
  std::string frame(const std::string& text);

 private:
  int lines_ = 0;
};

}  // namespace evenkeel::trainer
