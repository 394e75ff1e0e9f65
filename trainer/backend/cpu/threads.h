// Threads and floating-point mode of the thread that computes. Called at the start of every entry into the
// back end, because OpenMP keeps its thread count for each calling thread.
#pragma once

namespace evenkeel::trainer {

// Sets OpenMP's threads for the calling thread, and flush-to-zero for it and its helpers: denormal numbers
// cost a hundred cycles each and change no result that matters.
void enter_compute(int threads);

}  // namespace evenkeel::trainer
