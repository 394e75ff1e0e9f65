#include "trainer/collectives/tcp/tcp_ring.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "base/trace.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;
using contract::CollectiveOp;
using contract::DataType;

std::span<std::byte> bytes_of(std::span<float> values) {
  return std::as_writable_bytes(values);
}
std::span<std::byte> bytes_of(std::span<double> values) {
  return std::as_writable_bytes(values);
}
std::span<std::byte> bytes_of(std::span<std::int64_t> values) {
  return std::as_writable_bytes(values);
}

// Sleeping and being woken costs about as much: a neighbour that needs less is not slept for.
constexpr base::Duration kSpin = std::chrono::microseconds(20);

std::string trace_name(CollectiveOp op, std::uint32_t bucket) {
  if (!base::trace_is_open()) return "";
  if (op == CollectiveOp::kAllReduce) return "all-reduce, bucket " + std::to_string(bucket);
  return op == CollectiveOp::kBroadcast ? "broadcast" : "barrier";
}

}  // namespace

base::Duration ring_patience(int failure_detection_seconds) {
  return std::chrono::seconds(std::max(300, 10 * failure_detection_seconds));
}

struct TcpRing::State {
  TcpRingOptions options;
  base::Listener* listener = nullptr;
  RingLinks links;
  std::vector<std::byte> staging;
  std::uint64_t sequence = 0;
  std::array<CollectiveCount, 4> counts{};  // by CollectiveOp
  std::optional<Error> failure;             // the first; of the calling thread

  base::Waker waker;
  std::atomic<bool> aborted{false};
  mutable std::mutex mutex;  // guards abort_reason
  std::string abort_reason;

  CollectiveCount& count(CollectiveOp op) { return counts[static_cast<std::size_t>(op)]; }

  RingSchedule schedule(CollectiveOp op, int root, const RingBuffer& buffer) const {
    const int rank = options.member.rank;
    const int size = static_cast<int>(options.member.peers.size());
    const std::uint64_t chunk = kChunkBytes / contract::size_of(buffer.dtype);
    if (op == CollectiveOp::kBarrier) return barrier_schedule(rank, size);
    if (op == CollectiveOp::kBroadcast) return broadcast_schedule(rank, size, root, buffer.elements(), chunk);
    return all_reduce_schedule(rank, size, buffer.elements(), chunk);
  }

  // An abort says why; what the broken exchange saw is only its echo.
  Error explain(Error error) const {
    if (!aborted.load()) return error;
    const std::lock_guard lock(mutex);
    return {ErrorCode::kAborted, abort_reason};
  }
};

TcpRing::TcpRing(TcpRingOptions options, base::Listener* listener) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->listener = listener;
  state_->staging.resize(kChunkBytes);
}

TcpRing::~TcpRing() = default;

int TcpRing::rank() const {
  return state_->options.member.rank;
}
int TcpRing::size() const {
  return static_cast<int>(state_->options.member.peers.size());
}

Status TcpRing::connect() {
  if (size() == 1) return {};
  auto links = connect_ring(state_->options.member, *state_->listener, state_->options.shared_memory,
                            base::real_clock().now() + state_->options.connect_patience, &state_->waker);
  if (!links.ok()) {
    state_->failure = state_->explain(std::move(links).error());
    return *state_->failure;
  }
  state_->links = std::move(*links);
  return {};
}

Status TcpRing::run(CollectiveOp op, std::uint32_t bucket, int root, const RingBuffer& buffer) {
  State& state = *state_;
  if (state.failure) return *state.failure;
  const base::TraceSpan span("collective", trace_name(op, bucket));
  const base::MonotonicTime begin = base::real_clock().now();
  CollectiveCount& count = state.count(op);
  if (size() > 1) {
    const RingSchedule schedule = state.schedule(op, root, buffer);
    ExchangeSetup setup;
    setup.rank = state.options.member.name(rank());
    setup.header.dtype = buffer.dtype;
    setup.header.op = op;
    setup.header.fence = state.options.member.fence;
    setup.header.bucket = bucket;
    setup.header.sequence = state.sequence;
    setup.patience = state.options.patience;
    if (state.options.cores >= size()) setup.spin = kSpin;
    setup.waker = &state.waker;
    setup.aborted = &state.aborted;
    Status status = exchange(setup, schedule, buffer, state.links, state.staging);
    if (!status.ok()) {
      state.failure = state.explain(std::move(status).error());
      // The neighbours must not wait for a rank that will never answer.
      state.links = {};
      return *state.failure;
    }
    for (const RingFrame& frame : schedule.out)
      count.sent_bytes += frame.count * contract::size_of(buffer.dtype);
    count.frames += schedule.out.size();
  } else if (state.aborted.load()) {
    state.failure = state.explain({ErrorCode::kAborted, ""});
    return *state.failure;
  }
  ++state.sequence;
  ++count.calls;
  count.message_bytes += buffer.head.size() + buffer.tail.size();
  count.seconds += base::seconds(base::real_clock().now() - begin);
  return {};
}

Status TcpRing::all_reduce(std::span<float> values, std::uint32_t bucket, std::span<float> tail) {
  return run(CollectiveOp::kAllReduce, bucket, 0, {DataType::kF32, bytes_of(values), bytes_of(tail)});
}

Status TcpRing::all_reduce(std::span<double> values, std::uint32_t bucket, std::span<double> tail) {
  return run(CollectiveOp::kAllReduce, bucket, 0, {DataType::kF64, bytes_of(values), bytes_of(tail)});
}

Status TcpRing::all_reduce(std::span<std::int64_t> values, std::uint32_t bucket,
                           std::span<std::int64_t> tail) {
  return run(CollectiveOp::kAllReduce, bucket, 0, {DataType::kI64, bytes_of(values), bytes_of(tail)});
}

Status TcpRing::broadcast(std::span<float> values, int root) {
  return run(CollectiveOp::kBroadcast, 0, root, {DataType::kF32, bytes_of(values), {}});
}

Status TcpRing::broadcast(std::span<double> values, int root) {
  return run(CollectiveOp::kBroadcast, 0, root, {DataType::kF64, bytes_of(values), {}});
}

Status TcpRing::barrier() {
  return run(CollectiveOp::kBarrier, 0, 0, {});
}

void TcpRing::abort(const std::string& reason) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->aborted.load()) return;
    state_->abort_reason = reason;
    state_->aborted.store(true);
  }
  state_->waker.wake();
}

CollectiveCount TcpRing::count(CollectiveOp op) const {
  return state_->counts[static_cast<std::size_t>(op)];
}

std::uint64_t TcpRing::bytes_to_next() const {
  const RingLinks& links = state_->links;
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (!links.next.socket.open()) return 0;
  if (::getsockopt(links.next.socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  const bool memory = links.out != nullptr && links.out->kind() == LinkKind::kSharedMemory;
  return info.tcpi_bytes_sent - info.tcpi_bytes_retrans + (memory ? links.out->moved() : 0);
}

TcpRing::Path TcpRing::to_next() const {
  const RingLinks& links = state_->links;
  return {links.out ? links.out->kind() : LinkKind::kTcp, links.next.why_tcp};
}

TcpRing::Path TcpRing::from_previous() const {
  const RingLinks& links = state_->links;
  return {links.in ? links.in->kind() : LinkKind::kTcp, links.previous.why_tcp};
}

}  // namespace evenkeel::trainer
