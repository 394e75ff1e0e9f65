// A job told event by event, for tests of Coordination. Rank r comes on connection 100 + r. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "trainer/coordinator/coordination.h"
#include "trainer/coordinator/coordination_fixture.h"

namespace evenkeel::trainer::testing {

class Story {
 public:
  explicit Story(contract::TrainerConfig config, std::int64_t samples = 100)
      : config_(config), samples_(samples), c_(std::move(config), 0) {}

  ConnectionId id(int rank) const { return 100 + rank; }
  void joins(int rank) { joins(rank, test_join(rank, samples_)); }
  void joins(int rank, const contract::Join& join, std::int64_t incarnation = 1, ConnectionId from = 0) {
    c_.joined(from == 0 ? id(rank) : from, test_hello(config_, rank, incarnation), join, now);
    collect();
  }
  void all_join() {
    for (int r = 0; r < config_.ranks; ++r) joins(r);
  }
  template <class M>
  void says(int rank, contract::MessageType type, const M& message) {
    c_.received(id(rank), type, to_json(message), now);
    collect();
  }
  void ready(int rank, const std::string& hash = "beef") {
    says(rank, contract::MessageType::kReady, contract::Ready{fence(), hash, 0.5});
  }
  void all_ready() {
    for (int r = 0; r < config_.ranks; ++r) ready(r);
  }
  void starts() {
    all_join();
    all_ready();
  }
  void commits(int rank, std::int64_t step, double own_seconds = 0.1) {
    says(rank, contract::MessageType::kCommit, test_commit(plans.at(step), rank, own_seconds));
  }
  void all_commit(std::int64_t step) {
    now += 0.1;
    for (int r = 0; r < config_.ranks; ++r) commits(r, step);
    const contract::StepPlan& plan = plans.at(step);
    for (int r = 0; r < config_.ranks; ++r) {
      if (plan.evaluate_after)
        says(r, contract::MessageType::kEvaluated, contract::Evaluated{step, plan.epoch, 5.0, 9, 10, 0.1});
      if (plan.checkpoint_after) {
        says(r, contract::MessageType::kCheckpointed,
             contract::Checkpointed{step, r == 0 ? "step-1" : "", 77, 0.1, ""});
      }
    }
  }
  contract::Fence fence() const { return {config_.attempt, report().coordinator_incarnation, report().generation}; }
  // Rank leaves its group at `step`; with the commit of that step where it has done it under an older fence.
  void pauses(int rank, std::int64_t step) {
    contract::Paused paused;
    paused.fence = fence();
    paused.step = step;
    if (const auto plan = plans.find(step); plan != plans.end()) paused.last = test_commit(plan->second, rank);
    says(rank, contract::MessageType::kPaused, paused);
  }
  void disconnects(int rank) {
    c_.disconnected(id(rank), "closed", now);
    collect();
  }
  void passes(double seconds) {
    now += seconds;
    c_.tick(now);
    collect();
  }
  void stops() {
    c_.stop("SIGTERM", now);
    collect();
  }
  // The last message of this type to this connection.
  const base::Json* got(ConnectionId to, contract::MessageType type) const {
    const Outgoing* last = nullptr;
    for (const Outgoing& message : sent) {
      if (message.to == to && message.type == type) last = &message;
    }
    return last == nullptr ? nullptr : &last->payload;
  }
  std::string refusal(ConnectionId to) const {
    const base::Json* json = got(to, contract::MessageType::kRefused);
    return json == nullptr ? "" : contract::decode_refused(*json)->reason;
  }
  contract::Membership membership(int rank) const {
    const base::Json* json = got(id(rank), contract::MessageType::kMembership);
    EXPECT_NE(json, nullptr);
    return json == nullptr ? contract::Membership{} : contract::decode_membership(*json).value();
  }
  contract::JobReport report() const { return c_.report(now); }
  Coordination& coordination() { return c_; }

  double now = 1;
  std::vector<Outgoing> sent;
  std::map<std::int64_t, contract::StepPlan> plans;

 private:
  void collect() {
    for (Outgoing& message : c_.take_outgoing()) {
      if (message.type == contract::MessageType::kStepPlan) {
        auto plan = contract::decode_step_plan(message.payload);
        plans[plan->step] = *plan;
      }
      sent.push_back(std::move(message));
    }
  }

  contract::TrainerConfig config_;
  std::int64_t samples_;
  Coordination c_;
};

}  // namespace evenkeel::trainer::testing
