#include "trainer/backend/cpu/threads.h"

#include <omp.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace evenkeel::trainer {
namespace {

void flush_denormals() {
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 0x8000;
  constexpr unsigned kDenormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
#endif
}

}  // namespace

void enter_compute(int threads) {
  thread_local int prepared_for = 0;
  omp_set_num_threads(threads);
  if (prepared_for == threads) return;
#pragma omp parallel
  flush_denormals();
  prepared_for = threads;
}

}  // namespace evenkeel::trainer
