// Several ranks end, their pod has one exit code: the one that says most about what went wrong. Called by
// trainer/launch. Pure.
#pragma once

#include <cstddef>
#include <span>

namespace evenkeel::contract {

// Which of the codes is the worst; of equal ones the first. From the worst on:
//   64 78 69 65 76   nothing gets better by trying again: a rank that ends with 75 because of it must not hide it
//   70 and unknown   a defect
//   128 + signal     killed from outside, or crashed (not 143)
//   74, 75           another machine may help; it lost the others
//   143, 0           as asked; done
// REQUIRES: codes is not empty.
std::size_t worst_exit(std::span<const int> codes);

}  // namespace evenkeel::contract
