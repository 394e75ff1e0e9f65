#include "trainer/loop/worker_log.h"

#include <algorithm>

#include "base/log.h"

namespace evenkeel::trainer {

void log_step(const contract::StepPlan& plan, const contract::Commit& commit, std::int64_t target_steps) {
  constexpr std::int64_t kEvery = 50;
  if (plan.step % kEvery != 0 && plan.step != 1 && plan.step != target_steps) return;
  const double count = std::max<double>(1, static_cast<double>(commit.reduced_count));
  base::log_info("step", {{"step", plan.step},
                          {"targetSteps", target_steps},
                          {"epoch", plan.epoch},
                          {"loss", commit.loss_sum / count},
                          {"samples", commit.samples},
                          {"learningRate", commit.learning_rate},
                          {"stepSeconds", commit.step_seconds},
                          {"busySeconds", commit.phases.busy()},
                          {"collectiveWaitSeconds", commit.phases.collective_wait}});
}

void log_paths(const TcpRing& ring) {
  if (ring.size() < 2) return;
  const TcpRing::Path next = ring.to_next(), previous = ring.from_previous();
  base::log_info("ring connected", {{"toNext", link_kind_text(next.kind)},
                                    {"fromPrevious", link_kind_text(previous.kind)},
                                    {"whyNot", next.why_tcp.empty() ? previous.why_tcp : next.why_tcp}});
}

void log_throttling(base::Files& files, const CpuLimit& cpu) {
  const auto throttling = read_cpu_throttling(files);
  if (!throttling) return;
  base::log_info("CPU throttling", {{"periods", throttling->periods},
                                    {"throttledPeriods", throttling->throttled},
                                    {"cpuLimit", cpu.cores},
                                    {"source", throttling->source}});
}

}  // namespace evenkeel::trainer
