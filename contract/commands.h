// Subcommands of evenkeel-trainer that pods are started with, where it is not the name of their role. Written by
// operator/render and trainer/local, read by trainer/app. Data only.
#pragma once

namespace evenkeel::contract {

inline constexpr char kLaunchCommand[] = "launch";  // a worker pod of several ranks

}  // namespace evenkeel::contract
