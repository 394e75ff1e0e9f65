// The warnings in a worker's log, for the person at the terminal who does not read it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace evenkeel::trainer {

// "message (field value, ...)" of each warning and error in a log of JSON lines, each once, in order, at most
// `most`. What is no such line is passed over: libraries write theirs.
std::vector<std::string> warnings_of(std::string_view log, std::size_t most);

}  // namespace evenkeel::trainer
