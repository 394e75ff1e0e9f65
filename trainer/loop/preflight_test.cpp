// The look before the first step, by ranks that are threads with a real ring.
#include "trainer/loop/preflight.h"

#include <gtest/gtest.h>

#include "trainer/loop/training_fixture.h"

namespace evenkeel::trainer {
namespace {

using testing::put_row_set;

contract::TrainingJobSpec deep_job(int ranks, std::int64_t batch) {
  contract::TrainingJobSpec spec = testing::job_over("/data", ranks, batch);
  spec.model.layers = {testing::layer("flatten"), testing::layer("dense", 17, true, "relu"), testing::layer("dense", 4)};
  return spec;
}

struct Look {
  base::Result<contract::Preflight> found = base::Error{base::ErrorCode::kInternal, "did not run"};
  std::string hash_before, hash_after;
};

// Rank 2 of three is made what `inject` says.
std::vector<Look> look(const contract::TrainingJobSpec& spec, const std::string& inject) {
  base::FakeFiles files;
  put_row_set(files, "/data", 60, 4);
  const int size = spec.ranks();
  std::vector<base::Listener> listeners;
  std::vector<std::string> peers;
  for (int rank = 0; rank < size; ++rank) {
    listeners.push_back(std::move(*base::Listener::open({"127.0.0.1", 0})));
    peers.push_back("127.0.0.1:" + std::to_string(listeners.back().port()));
  }
  std::vector<Look> looks(static_cast<std::size_t>(size));
  const auto run = [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    Look& mine = looks[at];
    TcpRingOptions ring_options;
    ring_options.member = {{1, 1, 1}, rank, peers, "a key for this test"};
    TcpRing ring(ring_options, &listeners[at]);
    ReplicaOptions options;
    options.injection = *Injection::parse(inject, rank, size);
    auto replica = Replica::make(files, spec, options);
    ASSERT_TRUE(replica.ok()) << replica.error().message;
    ASSERT_TRUE(ring.connect().ok());
    mine.hash_before = (*replica)->parameter_hash();
    GradientReduction reduction(ring, (*replica)->engine().plan().buckets, (*replica)->engine().gradient_arena());
    StepTimer timer(base::real_clock());
    mine.found = run_preflight({**replica, rank, ring, reduction, timer, {}}, preflight_options(spec, 60));
    mine.hash_after = (*replica)->parameter_hash();
    if (!mine.found.ok()) ring.abort("a check has failed");
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  return looks;
}

TEST(Preflight, measures_and_leaves_everything_as_it_was) {
  const std::vector<Look> looks = look(deep_job(3, 12), "");
  for (const Look& one : looks) {
    ASSERT_TRUE(one.found.ok()) << one.found.error().message;
    EXPECT_EQ(one.hash_before, one.hash_after);
    EXPECT_EQ(to_json(contract::Ready{{}, "", 0, *one.found}), to_json(contract::Ready{{}, "", 0, *looks[0].found}))
        << "the same on all ranks";
  }
  const contract::Preflight& found = *looks[0].found;
  EXPECT_GT(found.bus_bytes_per_second, 0);
  EXPECT_GE(found.best_bus_bytes_per_second, found.bus_bytes_per_second);
  EXPECT_GT(found.best_bucket_bytes, 0);
  EXPECT_GT(found.real_step_seconds, 0);
  EXPECT_GT(found.synthetic_step_seconds, 0);
  EXPECT_EQ(found.samples, 12);
  EXPECT_LT(found.seconds, 20);
}

TEST(Preflight, slow_reading_shows_between_real_and_synthetic_input) {
  const std::vector<Look> looks = look(deep_job(3, 12), "input=0.005");  // 20 ms a step and rank
  ASSERT_TRUE(looks[0].found.ok()) << looks[0].found.error().message;
  EXPECT_GT(looks[0].found->real_step_seconds, looks[0].found->synthetic_step_seconds + 0.018);
  EXPECT_GT(looks[0].found->share_input_seconds, 0.018);
}

TEST(Preflight, what_is_wrong_is_found_and_named) {
  const struct {
    const char* inject;
    const char* name;
  } rows[] = {{"wrong-integers@2", "PeerMemoryCorruption: "},
              {"wrong-loss@2", "LossScaledByReplicas: "},
              {"drop-gradient@2", "GradientDiffers: "}};
  for (const auto& row : rows) {
    int named = 0;
    for (const Look& one : look(deep_job(3, 12), row.inject)) {
      // Whoever sees it first takes the others out of the ring.
      if (one.found.ok() || one.found.error().code != base::ErrorCode::kNumerical) continue;
      EXPECT_EQ(one.found.error().message.rfind(row.name, 0), 0u) << one.found.error().message;
      ++named;
    }
    EXPECT_GE(named, 1) << row.inject;
  }
}

}  // namespace
}  // namespace evenkeel::trainer
