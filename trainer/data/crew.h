// A few threads that share the records of a batch with the thread that asks. Made by batch.h. run() may be
// called by several threads at the same time; each helps with its own work.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace evenkeel::trainer {

class Crew {
 public:
  // `threads` in all, the calling one included: 1 starts none.
  static std::unique_ptr<Crew> start(int threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Calls work(0) ... work(count - 1), in any order, and returns when all are done. `work` must not throw.
  void run(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  struct Job;
  Crew() = default;
  void help();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace evenkeel::trainer
