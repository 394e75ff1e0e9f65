#include "trainer/backend/cpu/engine.h"

#include <array>
#include <future>
#include <map>
#include <utility>

#include "base/trace.h"
#include "trainer/backend/cpu/arena_memory.h"
#include "trainer/backend/cpu/executor.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr auto index(Arena arena) {
  return static_cast<std::size_t>(arena);
}
constexpr std::array<const char*, kArenaCount> kArenaNames = {"parameters", "compute copy", "gradients",
                                                              "optimizer", "activations"};

class CpuEngine : public Engine {
 public:
  CpuEngine(Graph graph, EngineOptions options) : graph_(std::move(graph)), options_(std::move(options)) {}

  Status start(std::int64_t largest_batch) {
    EVENKEEL_ASSIGN(Executor * first, executor(largest_batch, PlanMode::kTraining));
    plan_ = first->plan();
    return {};
  }

  Result<Executor*> executor(std::int64_t batch, PlanMode mode) override {
    auto& slot = executors_[{batch, mode}];
    if (slot != nullptr) return static_cast<Executor*>(slot.get());
    EVENKEEL_ASSIGN(std::unique_ptr<CpuExecutor> made, take_over_or_compile(batch, mode));
    EVENKEEL_TRY(make_room(made->plan()));
    made->bind(starts());
    made->set_exchange(exchange_);
    warn_of_reference_kernels(*made);
    slot = std::move(made);
    return static_cast<Executor*>(slot.get());
  }

  void expect(std::int64_t batch, PlanMode mode) override {
    const Key key{batch, mode};
    if (const auto found = executors_.find(key); found != executors_.end() && found->second != nullptr) return;
    auto& begun = expected_[key];
    if (begun.valid()) return;
    begun = std::async(std::launch::async, [this, batch, mode] {
      base::name_trace_thread("plan compiler");
      return compile(batch, mode);
    });
  }
  Compiled compiled() const override { return compiled_; }

  const Plan& plan() const override { return plan_; }
  void set_statistics_exchange(StatisticsExchange exchange) override {
    exchange_ = std::move(exchange);
    for (const auto& [key, executor] : executors_) {
      if (executor != nullptr) executor->set_exchange(exchange_);
    }
  }

  std::span<float> parameters() override { return floats(Arena::kParameters).first(plan_.layout_elements); }
  std::span<float> gradients() override { return floats(Arena::kGradients).first(plan_.layout_elements); }
  std::span<float> parameter_arena() override { return floats(Arena::kParameters); }
  std::span<float> gradient_arena() override { return floats(Arena::kGradients); }
  std::span<float> optimizer_state() override { return floats(Arena::kOptimizer); }
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  using Key = std::pair<std::int64_t, PlanMode>;
  using Made = Result<std::unique_ptr<CpuExecutor>>;

  // On any thread: reads nothing that changes after the constructor.
  Made compile(std::int64_t batch, PlanMode mode) const {
    EVENKEEL_ASSIGN(Plan plan, compile_plan(graph_, batch, mode, options_.plan));
    // Once with the plan alone, before oneDNN is asked: a plan beyond all measure may not even be describable
    // there.
    EVENKEEL_TRY(check_plan(plan));
    EVENKEEL_ASSIGN(auto made, CpuExecutor::compile(std::move(plan), options_.threads));
    EVENKEEL_TRY(check_plan(made->plan()));
    return made;
  }

  Made take_over_or_compile(std::int64_t batch, PlanMode mode) {
    if (const auto begun = expected_.find({batch, mode}); begun != expected_.end()) {
      Made made = begun->second.get();
      expected_.erase(begun);
      ++compiled_.aside;
      return made;
    }
    ++compiled_.here;
    return compile(batch, mode);
  }

  Status check_plan(const Plan& plan) const {
    return check_memory(plan, options_.other_bytes, options_.memory_limit_bytes,
                        options_.memory_limit_source);
  }

  // Arenas 1 to 4 are made once; arena 5 grows, and whoever was bound to the old one is bound again.
  Status make_room(const Plan& plan) {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if (memory_[i].size_bytes() >= plan.arena_bytes[i]) continue;
      memory_[i] = {};  // first the old one goes, so that both never exist together
      EVENKEEL_ASSIGN(memory_[i], ArenaMemory::allocate(plan.arena_bytes[i], kArenaNames[i]));
      for (const auto& [key, other] : executors_) {
        if (other != nullptr) other->bind(starts());
      }
    }
    return {};
  }

  ArenaStarts starts() const {
    ArenaStarts result{};
    for (std::size_t i = 0; i < memory_.size(); ++i) result[i] = memory_[i].data();
    return result;
  }

  std::span<float> floats(Arena arena) {
    const ArenaMemory& memory = memory_[index(arena)];
    return {reinterpret_cast<float*>(memory.data()), memory.size_bytes() / sizeof(float)};
  }

  // oneDNN falls back to loops that are a hundred times slower without a word; we say it.
  void warn_of_reference_kernels(const CpuExecutor& made) {
    for (const std::string& kernel : made.kernels()) {
      if (kernel.find(": ref") != std::string::npos) {
        warnings_.push_back("slow reference kernel for batch " + std::to_string(made.plan().batch) + ", " +
                            kernel);
      }
    }
  }

  const Graph graph_;
  const EngineOptions options_;
  Plan plan_;
  std::array<ArenaMemory, kArenaCount> memory_;
  std::map<Key, std::unique_ptr<CpuExecutor>> executors_;
  std::vector<std::string> warnings_;
  StatisticsExchange exchange_;
  Compiled compiled_;
  std::map<Key, std::future<Made>> expected_;  // their threads read the members above: they end first
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(Graph graph, std::int64_t largest_batch,
                                               EngineOptions options) {
  if (options.threads < 1) {
    return Error{ErrorCode::kInvalidInput,
                 "compute threads is " + std::to_string(options.threads) + ", must be at least 1"};
  }
  auto engine = std::make_unique<CpuEngine>(std::move(graph), std::move(options));
  EVENKEEL_TRY(engine->start(largest_batch));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace evenkeel::trainer
