#include "trainer/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace evenkeel::trainer {

void CheckpointWriter::Copies::take(const std::vector<TensorView>& tensors) {
  std::size_t elements = 0;
  for (const TensorView& tensor : tensors) elements += tensor.values.size();
  memory.resize(elements);
  views = tensors;
  std::size_t at = 0;
  for (TensorView& view : views) {
    const std::span<float> copy = std::span<float>(memory).subspan(at, view.values.size());
    std::copy(view.values.begin(), view.values.end(), copy.begin());
    view.values = copy;
    at += copy.size();
  }
}

CheckpointWriter::CheckpointWriter(base::Files& files, std::string root, int keep, PublishGate gate)
    : files_(files), root_(std::move(root)), keep_(keep), gate_(std::move(gate)) {}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CheckpointWriter::begin(contract::CheckpointManifest manifest, const std::vector<TensorView>& weights,
                             const std::vector<TensorView>& optimizer) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !busy_; });
  }
  const base::MonotonicTime start = base::real_clock().now();
  manifest_ = std::move(manifest);
  weights_.take(weights);
  optimizer_.take(optimizer);
  copy_seconds_ = base::seconds(base::real_clock().now() - start);
  {
    const std::lock_guard lock(mutex_);
    busy_ = true;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void CheckpointWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return busy_ || stops_; });
    if (!busy_) return;  // what was begun before the end is written
    lock.unlock();
    const base::MonotonicTime start = base::real_clock().now();
    SaveOutcome outcome;
    outcome.step = manifest_.step;
    outcome.copy_seconds = copy_seconds_;
    outcome.saved = save_checkpoint(files_, root_, manifest_, weights_.views, optimizer_.views, keep_, gate_);
    outcome.write_seconds = base::seconds(base::real_clock().now() - start);
    lock.lock();
    outcomes_.push_back(std::move(outcome));
    busy_ = false;
    changed_.notify_all();
  }
}

std::optional<SaveOutcome> CheckpointWriter::take_outcome() {
  if (outcomes_.empty()) return std::nullopt;
  SaveOutcome outcome = std::move(outcomes_.front());
  outcomes_.pop_front();
  return outcome;
}

std::optional<SaveOutcome> CheckpointWriter::poll() {
  const std::lock_guard lock(mutex_);
  return take_outcome();
}

std::optional<SaveOutcome> CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_ || !outcomes_.empty(); });
  return take_outcome();
}

bool CheckpointWriter::busy() const {
  const std::lock_guard lock(mutex_);
  return busy_;
}

}  // namespace evenkeel::trainer
