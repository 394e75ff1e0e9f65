// The engine beside PyTorch: stored inputs, weights, outputs of every layer, losses, gradients and running
// statistics (tests/golden, described in its README; made anew by ./dev golden).
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "base/files.h"
#include "base/hash.h"
#include "base/philox.h"
#include "contract/job/validate.h"
#include "trainer/backend/cpu/engine.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/model/initializer.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/running_statistics.h"

namespace evenkeel::trainer {
namespace {

using base::Json;

const std::string kFolder = std::string(EVENKEEL_SOURCE_DIR) + "/tests/golden/";

struct Stored {
  Shape shape;
  std::vector<float> values;
};

struct Golden {
  Json json;
  std::map<std::string, Stored> tensors;

  const std::vector<float>& at(const std::string& name) const { return tensors.at(name).values; }
  bool has(const std::string& name) const { return tensors.contains(name); }
  std::string mode() const { return base::string_at(base::child(json, "statistics"), "mode"); }
};

Golden read_golden(const std::string& name) {
  Golden golden;
  golden.json = base::parse_json(base::real_files().read(kFolder + name + ".json", 1u << 20).value()).value();
  const std::string path = kFolder + name + ".safetensors";
  const SafetensorsIndex index = read_safetensors_index(base::real_files(), path).value();
  std::vector<TensorView> targets;
  for (const SafetensorsEntry& entry : index.entries) {
    Stored& stored = golden.tensors[entry.name];
    stored.shape = entry.shape;
    stored.values.resize((entry.end - entry.begin) / sizeof(float));
    targets.push_back({entry.name, entry.shape, stored.values});
  }
  EXPECT_TRUE(read_safetensors(base::real_files(), path, targets).ok());
  return golden;
}

// The model as a manifest gives it, so that the decoder is part of what is tested.
contract::TrainingJobSpec spec_of(const Golden& golden) {
  Json spec;
  spec["workers"] = Json{{"replicas", 1}};
  spec["model"] = golden.json["model"];
  spec["dataset"] = Json{{"format", "idx"}, {"path", "/data"}};
  spec["training"] = Json{{"epochs", 1},
                          {"batchSize", Json{{"global", 16}}},
                          {"optimizer", Json{{"convention", golden.json["convention"]}}}};
  const auto decoded = contract::decode_spec(spec);
  EXPECT_TRUE(decoded.ok()) << decoded.error().message;
  return *decoded;
}

Graph graph_of(const Golden& golden) {
  const contract::TrainingJobSpec spec = spec_of(golden);
  const auto graph = build_model(spec.model, golden.json["sampleShape"].get<Shape>(),
                                 golden.json["classes"].get<int>(), spec.training.optimizer.convention);
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return *graph;
}

EngineOptions options_of(const Golden& golden) {
  EngineOptions options;
  options.threads = 2;
  options.plan.keep_all = true;
  options.plan.label_smoothing = golden.json["labelSmoothing"].get<double>();
  options.plan.statistics = golden.mode() == "Ghost"   ? StatisticsMode::kGhost
                            : golden.mode() == "Local" ? StatisticsMode::kLocal
                                                       : StatisticsMode::kSync;
  options.plan.group = base::int_at(base::child(golden.json, "statistics"), "group", 16);
  return options;
}

// Images by the rule of the README: integers, so that both sides make the same bytes.
std::vector<std::uint8_t> rule_images(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  const base::PhiloxKey key = {0x65766b6c, 0x00000001};
  std::vector<std::uint8_t> bytes;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t k = i % 10;
    const std::uint32_t phase = base::philox({i, 0, 0, 1}, key)[0] % 16;
    for (std::uint32_t y = 0; y < height; ++y) {
      for (std::uint32_t x = 0; x < width; ++x) {
        const auto noise = base::philox({i, y, x, 0}, key);
        const std::uint32_t along = k % 3 == 0 ? x : k % 3 == 1 ? y : x + y;
        const int sign = (along + phase) % (4 + k) < (4 + k) / 2 ? 1 : -1;
        for (std::uint32_t c = 0; c < 3; ++c) {
          constexpr int kContrast[] = {60, 20, -40};
          const int value = 128 + sign * kContrast[(k + c) % 3] + static_cast<int>(noise[c] & 63) - 32;
          bytes.push_back(static_cast<std::uint8_t>(std::clamp(value, 0, 255)));
        }
      }
    }
  }
  return bytes;
}

struct Batch {
  std::vector<float> features;
  std::vector<std::int32_t> labels;
};

Batch batch_of(const Golden& golden) {
  Batch batch;
  if (golden.has("x")) {
    batch.features = golden.at("x");
    for (const float label : golden.at("labels")) batch.labels.push_back(static_cast<std::int32_t>(label));
    return batch;
  }
  const Json& images = golden.json["images"];
  const auto count = images["count"].get<std::uint32_t>();
  const Shape shape = golden.json["sampleShape"].get<Shape>();
  const auto bytes =
      rule_images(count, static_cast<std::uint32_t>(shape[0]), static_cast<std::uint32_t>(shape[1]));
  EXPECT_EQ(base::sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()}),
            images["sha256"].get<std::string>());
  for (const std::uint8_t byte : bytes) batch.features.push_back(static_cast<float>(byte) / 255.0f);
  for (std::uint32_t i = 0; i < count; ++i) batch.labels.push_back(static_cast<std::int32_t>(i % 10));
  return batch;
}

void load_parameters(Engine& engine, const Golden& golden) {
  initialize_parameters(engine.plan(), static_cast<std::uint64_t>(base::int_at(golden.json, "seed", 1)),
                        engine.parameter_arena());
  for (const PlanParameter& p : engine.plan().parameters) {
    auto values = engine.parameters().subspan(p.offset_elements, static_cast<std::size_t>(p.elements));
    if (golden.has("param:" + p.name)) {
      ASSERT_EQ(golden.tensors.at("param:" + p.name).shape, p.shape) << p.name;
      std::ranges::copy(golden.at("param:" + p.name), values.begin());
    } else {
      const auto& first = golden.at("first8:" + p.name);
      for (std::size_t i = 0; i < first.size(); ++i) ASSERT_EQ(values[i], first[i]) << p.name << " at " << i;
    }
  }
}

// The largest |have - want| by the largest |want|.
void expect_close(std::span<const float> have, const std::vector<float>& want, double relative,
                  const std::string& what) {
  ASSERT_EQ(have.size(), want.size()) << what;
  double largest = 1e-4, worst = 0;
  for (const float w : want) largest = std::max(largest, static_cast<double>(std::abs(w)));
  for (std::size_t i = 0; i < want.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(have[i]) - static_cast<double>(want[i])));
  EXPECT_LE(worst, relative * largest) << what << ": the largest value is " << largest;
}

void expect_sums(std::span<const float> have, const std::vector<float>& want, double relative,
                 const std::string& what) {
  double sum = 0, squares = 0;
  for (const float v : have) {
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  EXPECT_NEAR(squares, static_cast<double>(want[1]), 2 * relative * static_cast<double>(want[1]) + 1e-9)
      << what;
  // A sum cancels: its rounding is that of the square root of the squares times the count.
  const double scale = std::sqrt(static_cast<double>(want[1]) * static_cast<double>(have.size()));
  EXPECT_NEAR(sum, static_cast<double>(want[0]), relative * scale + 1e-9) << what;
}

// One rank of the case, with `share` of its samples.
struct Rank {
  std::unique_ptr<Engine> engine;
  Executor* executor = nullptr;
  LossSums sums;
};

class Ranks {
 public:
  Ranks(const Golden& golden, const std::vector<std::int64_t>& shares)
      : meeting_(static_cast<std::ptrdiff_t>(shares.size())), batch_(batch_of(golden)) {
    const Graph graph = graph_of(golden);
    for (const std::int64_t share : shares) {
      Rank& rank = ranks_.emplace_back();
      rank.engine = Engine::create(graph, share, options_of(golden)).value();
      load_parameters(*rank.engine, golden);
      rank.engine->set_statistics_exchange(
          [this](std::span<double> values) { return add_over_ranks(values); });
      rank.executor = rank.engine->executor(share, PlanMode::kTraining).value();
    }
    run(shares);
  }

  const std::vector<Rank>& ranks() const { return ranks_; }
  double loss() const {
    double sum = 0;
    for (const Rank& rank : ranks_) sum += rank.sums.loss;
    return sum;
  }
  // Arena 3, added over ranks.
  std::vector<float> gradients() {
    std::vector<float> sum(ranks_[0].engine->gradient_arena().size(), 0.0f);
    for (const Rank& rank : ranks_) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rank.engine->gradient_arena()[i];
    }
    return sum;
  }

 private:
  void run(const std::vector<std::int64_t>& shares) {
    std::vector<std::thread> threads;
    std::size_t first = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      threads.emplace_back([this, r, first, count = static_cast<std::size_t>(shares[r])] {
        Rank& rank = ranks_[r];
        const auto features = static_cast<std::size_t>(rank.engine->plan().input_features);
        StepInput input;
        input.features = std::span<const float>(batch_.features).subspan(first * features, count * features);
        input.labels = std::span<const std::int32_t>(batch_.labels).subspan(first, count);
        rank.sums = rank.executor->forward(input).value();
        EXPECT_TRUE(rank.executor->backward(nullptr).ok());
      });
      first += static_cast<std::size_t>(shares[r]);
    }
    for (std::thread& thread : threads) thread.join();
  }

  base::Status add_over_ranks(std::span<double> values) {
    {
      const std::lock_guard lock(mutex_);
      if (sum_.size() != values.size()) sum_.assign(values.size(), 0.0);
      for (std::size_t i = 0; i < values.size(); ++i) sum_[i] += values[i];
    }
    meeting_.arrive_and_wait();
    std::ranges::copy(sum_, values.begin());
    meeting_.arrive_and_wait();
    {
      const std::lock_guard lock(mutex_);
      sum_.clear();
    }
    meeting_.arrive_and_wait();  // nobody begins the next sum before all have left this one
    return {};
  }

  std::barrier<> meeting_;
  std::mutex mutex_;
  std::vector<double> sum_;
  Batch batch_;
  std::vector<Rank> ranks_;
};

// The output of a layer behind its activation. Fusion may have taken the tensor away; then there is nothing
// to compare.
std::span<const float> output_of(const Executor& executor, const std::string& layer) {
  for (const char* suffix : {".relu", ".out", ".sum", ".flat", ".view"}) {
    const Plan& plan = executor.plan();
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
      if (plan.tensors[i].name == layer + suffix && plan.tensors[i].first_step >= 0)
        return executor.tensor(static_cast<TensorId>(i));
    }
  }
  return {};
}

int expect_activations(const Golden& golden, const Ranks& ranks, double relative) {
  int compared = 0;
  for (const auto& [name, stored] : golden.tensors) {
    if (!name.starts_with("act:")) continue;
    std::vector<float> whole;
    for (const Rank& rank : ranks.ranks()) {
      const auto part = output_of(*rank.executor, name.substr(4));
      whole.insert(whole.end(), part.begin(), part.end());
    }
    if (whole.empty()) continue;
    expect_close(whole, stored.values, relative, name);
    ++compared;
  }
  return compared;
}

void expect_gradients(const Golden& golden, const Plan& plan, std::span<const float> gradients,
                      double relative) {
  for (const PlanParameter& p : plan.parameters) {
    const auto have = gradients.subspan(p.offset_elements, static_cast<std::size_t>(p.elements));
    if (golden.has("grad:" + p.name)) {
      expect_close(have, golden.at("grad:" + p.name), relative, "grad:" + p.name);
    } else {
      expect_sums(have, golden.at("sums:grad:" + p.name), relative, "sums:grad:" + p.name);
    }
  }
}

void expect_running(const Golden& golden, Engine& engine, std::span<const float> gradients, double relative) {
  update_running_statistics(engine.plan(), engine.parameter_arena(), gradients);
  for (const PlanStatistic& s : engine.plan().statistics) {
    const auto view = [&](std::uint64_t offset) {
      return engine.parameter_arena().subspan(offset, static_cast<std::size_t>(s.channels));
    };
    for (const auto& [suffix, offset] : {std::pair{".running_mean", s.mean_offset_elements},
                                         std::pair{".running_var", s.variance_offset_elements}}) {
      const std::string name = "running:" + s.layer + suffix;
      if (golden.has(name)) {
        expect_close(view(offset), golden.at(name), relative, name);
      } else {
        expect_sums(view(offset), golden.at("sums:" + name), relative, name);
      }
    }
  }
}

void check_case(const std::string& name) {
  SCOPED_TRACE(name);
  const Golden golden = read_golden(name);
  std::vector<std::int64_t> shares = {golden.json["batch"].get<std::int64_t>()};
  if (golden.json.contains("parts")) shares = golden.json["parts"].get<std::vector<std::int64_t>>();
  // Deep nets round more: each layer adds its own.
  const double relative = name.starts_with("resnet20") ? 2e-3 : 2e-5;
  Ranks ranks(golden, shares);
  EXPECT_NEAR(ranks.loss(), static_cast<double>(golden.at("loss_sum")[0]),
              relative * static_cast<double>(golden.at("loss_sum")[0]));
  EXPECT_GE(expect_activations(golden, ranks, relative), 1);
  const std::vector<float> gradients = ranks.gradients();
  Engine& engine = *ranks.ranks()[0].engine;
  expect_gradients(golden, engine.plan(), gradients, relative);
  expect_running(golden, engine, gradients, relative);
}

TEST(Golden, every_stored_case_of_pytorch_is_met) {
  int cases = 0;
  for (const base::DirEntry& entry : base::real_files().list(kFolder).value()) {
    const std::string& file = entry.name;
    if (!file.ends_with(".json") || file.starts_with("resnet20_curve")) continue;
    check_case(file.substr(0, file.size() - 5));
    ++cases;
  }
  EXPECT_GE(cases, 50);
}

// 200 steps of ResNet-20 beside the same run in fp64: within the measured width of fp32 noise.
TEST(Golden, the_loss_curve_of_resnet20_is_that_of_pytorch) {
  if (!base::real_files().exists(kFolder + "resnet20_curve.json")) GTEST_SKIP() << "no stored curve";
  const Golden golden = read_golden("resnet20_curve");
  EngineOptions options = options_of(golden);
  options.plan.keep_all = false;
  const auto batch = golden.json["batch"].get<std::size_t>();
  auto engine = Engine::create(graph_of(golden), static_cast<std::int64_t>(batch), options).value();
  load_parameters(*engine, golden);
  const Batch all = batch_of(golden);
  contract::OptimizerSpec sgd;
  sgd.momentum = golden.json["optimizer"]["momentum"].get<double>();
  const auto optimizer = make_optimizer(sgd, &engine->plan()).value();
  Executor& executor = **engine->executor(static_cast<std::int64_t>(batch), PlanMode::kTraining);
  const auto features = static_cast<std::size_t>(engine->plan().input_features);
  const auto& want = golden.at("loss_fp64");
  const auto& envelope = golden.at("envelope");
  std::vector<float> losses;
  for (std::size_t step = 0; step < want.size(); ++step) {
    const std::size_t first = step * batch % all.labels.size();
    StepInput input;
    input.features = std::span<const float>(all.features).subspan(first * features, batch * features);
    input.labels = std::span<const std::int32_t>(all.labels).subspan(first, batch);
    const LossSums sums = executor.forward(input).value();
    ASSERT_TRUE(executor.backward(nullptr).ok());
    const double loss = sums.loss / static_cast<double>(batch);
    losses.push_back(static_cast<float>(loss));
    EXPECT_NEAR(loss, static_cast<double>(want[step]),
                std::max(2e-5 * static_cast<double>(want[step]), 2 * static_cast<double>(envelope[step])))
        << "step " << step;
    UpdateArgs update;
    update.learning_rate = golden.json["optimizer"]["learningRate"].get<double>();
    update.count = static_cast<double>(batch);
    update.step = static_cast<std::int64_t>(step) + 1;
    optimizer->step(engine->parameters(), engine->gradients(), engine->optimizer_state(), update);
  }
  // The envelope is made at the steepest part of the way. Where runs arrive that differ by rounding alone is sharper: the
  // means of the last 60 losses of the six stored ones are within 2 % of that of fp64.
  const auto mean_of_last = [](const std::vector<float>& of) {
    return std::accumulate(of.end() - 60, of.end(), 0.0) / 60;
  };
  EXPECT_NEAR(mean_of_last(losses), mean_of_last(want), 0.04 * mean_of_last(want));
}

}  // namespace
}  // namespace evenkeel::trainer
