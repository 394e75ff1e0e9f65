#include "trainer/coordinator/tuner.h"

#include <gtest/gtest.h>

namespace evenkeel::trainer {
namespace {

TunerConfig applying() {
  TunerConfig config;
  config.applies = true;
  return config;
}

void run(Tuner& tuner, std::int64_t batch, double step_seconds, int steps = 23) {
  for (int step = 0; step < steps; ++step) tuner.add(batch, static_cast<double>(batch), step_seconds);
}

TEST(Tuner, a_batch_that_pays_is_taken_measured_and_kept) {
  Tuner tuner(applying());
  const BatchOffer offer{256, 1.5};
  run(tuner, 64, 0.1, 19);
  EXPECT_FALSE(tuner.decide(64, offer)) << "not measured long enough";
  run(tuner, 64, 0.1, 4);
  const auto change = tuner.decide(64, offer);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->global_batch, 256);
  EXPECT_FALSE(tuner.decide(64, offer)) << "said once";
  run(tuner, 64, 0.1, 4);  // plans that were out already
  run(tuner, 256, 0.16);
  EXPECT_FALSE(tuner.decide(256, std::nullopt));
  EXPECT_NEAR(*tuner.done().back().measured_gain, 1.5, 1e-9);
  EXPECT_EQ(tuner.done().back().state, contract::RemedyState::kApplied);
  EXPECT_FALSE(tuner.rests()) << "the next one may pay too";
  run(tuner, 256, 0.16);
  EXPECT_EQ(tuner.decide(256, BatchOffer{512, 0.2})->global_batch, 512);
  EXPECT_EQ(tuner.done().size(), 2u);
}

TEST(Tuner, a_batch_that_does_not_pay_is_taken_back) {
  Tuner tuner(applying());
  run(tuner, 64, 0.1);
  ASSERT_TRUE(tuner.decide(64, BatchOffer{256, 1.5}));
  run(tuner, 256, 0.3);
  const auto back = tuner.decide(256, std::nullopt);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->global_batch, 64);
  EXPECT_EQ(tuner.done().back().state, contract::RemedyState::kReverted);
  EXPECT_TRUE(tuner.rests());
}

TEST(Tuner, speed_that_teaches_nothing_is_not_worth_it) {
  Tuner tuner(applying());
  run(tuner, 64, 0.1);
  EXPECT_FALSE(tuner.decide(64, BatchOffer{256, 1.5, 0.02})) << "faster, but no sooner at the same loss";
  const auto change = tuner.decide(64, BatchOffer{128, 0.6, 0.4});
  ASSERT_TRUE(change);
  EXPECT_NE(change->reason.find("40% in time to the same loss"), std::string::npos) << change->reason;
  EXPECT_NEAR(*tuner.done().back().predicted_loss_gain, 0.4, 1e-9);
}

TEST(Tuner, nothing_is_tried_without_leave_or_without_promise) {
  Tuner advises;
  run(advises, 64, 0.1);
  EXPECT_FALSE(advises.decide(64, BatchOffer{256, 1.5}));
  Tuner tuner(applying());
  run(tuner, 64, 0.1);
  EXPECT_FALSE(tuner.decide(64, std::nullopt));
  EXPECT_FALSE(tuner.decide(64, BatchOffer{128, 0.03}));
}

}  // namespace
}  // namespace evenkeel::trainer
