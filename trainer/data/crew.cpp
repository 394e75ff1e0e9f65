#include "trainer/data/crew.h"

#include <algorithm>
#include <atomic>

namespace evenkeel::trainer {

struct Crew::Job {
  const std::function<void(std::size_t)>* work = nullptr;
  std::size_t count = 0;
  std::atomic<std::size_t> next{0};
  std::size_t done = 0;  // under the crew's mutex
  std::condition_variable finished;

  // Takes items until none is left; how many it did.
  std::size_t take_part() {
    std::size_t did = 0;
    for (std::size_t i = next++; i < count; i = next++, ++did) (*work)(i);
    return did;
  }
};

std::unique_ptr<Crew> Crew::start(int threads) {
  std::unique_ptr<Crew> crew(new Crew);
  for (int i = 1; i < threads; ++i) crew->threads_.emplace_back([raw = crew.get()] { raw->help(); });
  return crew;
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::help() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    const std::shared_ptr<Job> job = jobs_.front();
    lock.unlock();
    const std::size_t did = job->take_part();
    lock.lock();
    // Nothing is left to begin, so nobody else need look at it; the asking thread may have taken it off.
    std::erase(jobs_, job);
    job->done += did;
    if (job->done == job->count) job->finished.notify_all();
  }
}

void Crew::run(std::size_t count, const std::function<void(std::size_t)>& work) {
  if (count == 0) return;
  if (threads_.empty() || count == 1) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  const auto job = std::make_shared<Job>();
  job->work = &work;
  job->count = count;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
  }
  wake_.notify_all();
  const std::size_t did = job->take_part();
  std::unique_lock lock(mutex_);
  std::erase(jobs_, job);
  job->done += did;
  // A helper that holds the job but got no item never calls `work`, so `work` may die with this frame.
  job->finished.wait(lock, [&] { return job->done == job->count; });
}

}  // namespace evenkeel::trainer
