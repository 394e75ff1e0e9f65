// The known name that was probably meant. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace evenkeel::contract {

// Empty if nothing is near (a third of the letters wrong is too far).
std::string nearest_name(std::string_view given, const std::vector<std::string>& known);

}  // namespace evenkeel::contract
