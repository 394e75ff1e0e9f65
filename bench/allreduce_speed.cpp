// One all-reduce through shared memory against the same over TCP, ranks as processes of this machine: ./dev bench
// collectives. A B A B, the slowest rank's time, medians; the sums are checked in what is timed.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/socket.h"
#include "trainer/collectives/tcp/tcp_ring.h"

namespace evenkeel::trainer {
namespace {

constexpr int kPairs = 15;
constexpr int kMostRanks = 4;
constexpr std::array<std::size_t, 7> kSizes{4 << 10, 16 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 16 << 20};
constexpr std::array<SharedMemory, 2> kKinds{SharedMemory::kWherePossible, SharedMemory::kOff};

// What the ranks tell each other beside the rings that are measured.
struct Board {
  std::array<std::array<double, kMostRanks>, 2> seconds;  // of the round that just ended, by kind and rank
};

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "allreduce_speed: %s\n", why.c_str());
  std::_Exit(70);
}

void must(const base::Status& status) {
  if (!status.ok()) give_up(status.error().message);
}

// Many for small ones; at most 60, for powers of the number of ranks must stay exact in floats (4^60 = 2^120).
int rounds_of(std::size_t bytes) {
  return static_cast<int>(std::clamp<std::size_t>((8 << 20) / bytes, 2, 60));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Rings {
  std::vector<std::vector<base::Listener>> listeners{2};
  std::vector<std::vector<std::string>> peers{2};

  explicit Rings(int size) {
    for (std::size_t kind = 0; kind < 2; ++kind) {
      for (int rank = 0; rank < size; ++rank) {
        auto listener = base::Listener::open({"127.0.0.1", 0});
        if (!listener.ok()) give_up(listener.error().message);
        peers[kind].push_back("127.0.0.1:" + std::to_string(listener->port()));
        listeners[kind].push_back(std::move(*listener));
      }
    }
  }
  std::unique_ptr<TcpRing> connect(int rank, std::size_t kind) {
    TcpRingOptions options;
    options.member = {{1, 1, 1}, rank, peers[kind], "a key for this measurement"};
    options.shared_memory.use = kKinds[kind];
    options.cores = static_cast<int>(std::thread::hardware_concurrency());
    auto ring = std::make_unique<TcpRing>(options, &listeners[kind][static_cast<std::size_t>(rank)]);
    must(ring->connect());
    const LinkKind expected = kind == 0 ? LinkKind::kSharedMemory : LinkKind::kTcp;
    if (ring->to_next().kind != expected || ring->from_previous().kind != expected)
      give_up("a link is not of its kind: " + ring->to_next().why_tcp);
    return ring;
  }
};

// Seconds of one all-reduce. Each multiplies by the number of ranks, a power of two: exact to the last bit.
double timed(TcpRing& ring, std::vector<float>& values, int rounds) {
  const int size = ring.size();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13 + 1);
  must(ring.barrier());
  const auto begin = base::real_clock().now();
  for (int round = 0; round < rounds; ++round) must(ring.all_reduce(std::span<float>(values), 0));
  const double seconds = base::seconds(base::real_clock().now() - begin) / rounds;
  float factor = 1;
  for (int round = 0; round < rounds; ++round) factor *= static_cast<float>(size);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != static_cast<float>(i % 13 + 1) * factor) give_up("a wrong sum at " + std::to_string(i));
  return seconds;
}

void measure(Rings& rings, int rank, int size, Board& board) {
  const std::array<std::unique_ptr<TcpRing>, 2> ring{rings.connect(rank, 0), rings.connect(rank, 1)};
  for (const std::size_t bytes : kSizes) {
    std::vector<float> values(bytes / sizeof(float));
    std::array<std::vector<double>, 2> seconds;
    std::vector<double> ratios;
    for (int pair = -1; pair < kPairs; ++pair) {  // the first is to warm up
      for (std::size_t kind = 0; kind < 2; ++kind) {
        board.seconds[kind][static_cast<std::size_t>(rank)] = timed(*ring[kind], values, rounds_of(bytes));
        must(ring[1]->barrier());
      }
      if (rank == 0 && pair >= 0) {
        std::array<double, 2> slowest{};
        for (std::size_t kind = 0; kind < 2; ++kind) {
          slowest[kind] = *std::max_element(board.seconds[kind].begin(), board.seconds[kind].begin() + size);
          seconds[kind].push_back(slowest[kind]);
        }
        ratios.push_back(slowest[1] / slowest[0]);
      }
      must(ring[1]->barrier());
    }
    if (rank != 0) continue;
    const double memory = median(seconds[0]), tcp = median(seconds[1]);
    std::printf("%5d %9zu KB %12.1f %12.1f %8.2f %9.2f - %-6.2f %8.2f %8.2f\n", size, bytes >> 10, memory * 1e6, tcp * 1e6,
                median(ratios), *std::min_element(ratios.begin(), ratios.end()),
                *std::max_element(ratios.begin(), ratios.end()),
                2.0 * (size - 1) / size * static_cast<double>(bytes) / memory / 1e9,
                2.0 * (size - 1) / size * static_cast<double>(bytes) / tcp / 1e9);
    std::fflush(stdout);
  }
}

int run() {
  void* shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) give_up("no memory for the times");
  auto& board = *new (shared) Board{};
  std::printf("%d cores; %d pairs of rounds each; bus = 2(n-1)/n x size / time\n",
              static_cast<int>(std::thread::hardware_concurrency()), kPairs);
  std::printf("ranks         size    shared us       tcp us    ratio    min - max     bus GB/s: shared, tcp\n");
  std::fflush(stdout);
  int failed = 0;
  for (const int size : {2, 4}) {
    Rings rings(size);
    std::vector<pid_t> children;
    for (int rank = 0; rank < size; ++rank) {
      const pid_t child = ::fork();
      if (child < 0) give_up("fork failed");
      if (child == 0) {
        measure(rings, rank, size, board);
        std::_Exit(0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      if (::waitpid(child, &status, 0) != child || status != 0) failed = 70;
    }
  }
  return failed;
}

}  // namespace
}  // namespace evenkeel::trainer

int main() {
  return evenkeel::trainer::run();
}
