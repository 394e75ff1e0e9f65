#include "trainer/collectives/tcp/ring_schedule.h"

#include <algorithm>

namespace evenkeel::trainer {
namespace {

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Sizes differ by at most one element. Written so that elements x size cannot overflow.
Range segment(std::uint64_t elements, int size, int index) {
  const auto n = static_cast<std::uint64_t>(size);
  const auto i = static_cast<std::uint64_t>(index);
  const std::uint64_t each = elements / n;
  const std::uint64_t rest = elements % n;
  const std::uint64_t begin = each * i + std::min(i, rest);
  return {begin, begin + each + (i < rest ? 1 : 0)};
}

// Appends the frames of `range`; the c-th frame needs `needs_before` + c (or nothing at all where `free`).
enum class Start { kFree, kAfterTwin };
void append(std::vector<RingFrame>& frames, Range range, std::uint16_t step, std::uint64_t chunk, bool add,
            Start start, std::size_t twins_before) {
  std::size_t chunk_index = 0;
  std::uint64_t offset = range.begin;
  do {
    RingFrame frame;
    frame.step = step;
    frame.offset = offset;
    frame.count = std::min(chunk, range.end - offset);
    frame.add = add;
    frame.needs = start == Start::kFree ? 0 : twins_before + ++chunk_index;
    offset += frame.count;
    frames.push_back(frame);
  } while (offset < range.end);
}

int modulo(int value, int size) {
  return ((value % size) + size) % size;
}

}  // namespace

RingSchedule all_reduce_schedule(int rank, int size, std::uint64_t elements, std::uint64_t chunk_elements) {
  RingSchedule schedule;
  std::size_t twins_before = 0;  // where the frames of the step before begin in schedule.in
  for (int step = 0; step < 2 * (size - 1); ++step) {
    const auto number = static_cast<std::uint16_t>(step);
    append(schedule.out, segment(elements, size, modulo(rank - step, size)), number, chunk_elements, false,
           step == 0 ? Start::kFree : Start::kAfterTwin, twins_before);
    twins_before = schedule.in.size();
    append(schedule.in, segment(elements, size, modulo(rank - step - 1, size)), number, chunk_elements,
           step < size - 1, Start::kFree, 0);
  }
  return schedule;
}

RingSchedule broadcast_schedule(int rank, int size, int root, std::uint64_t elements,
                                std::uint64_t chunk_elements) {
  RingSchedule schedule;
  const int position = modulo(rank - root, size);
  const Range all{0, elements};
  if (position > 0) {
    append(schedule.in, all, static_cast<std::uint16_t>(position - 1), chunk_elements, false, Start::kFree,
           0);
  }
  if (position < size - 1) {
    append(schedule.out, all, static_cast<std::uint16_t>(position), chunk_elements, false,
           position == 0 ? Start::kFree : Start::kAfterTwin, 0);
  }
  return schedule;
}

RingSchedule barrier_schedule(int, int size) {
  RingSchedule schedule;
  for (int step = 0; step < size - 1; ++step) {
    RingFrame frame;
    frame.step = static_cast<std::uint16_t>(step);
    schedule.in.push_back(frame);
    frame.needs = static_cast<std::size_t>(step);
    schedule.out.push_back(frame);
  }
  return schedule;
}

}  // namespace evenkeel::trainer
