// The metrics of one rank: handles into a registry, taken once, every label value born at zero. Updated by
// the loop's thread, read by the HTTP server's. Names and helps come from the catalogue.
#pragma once

#include <array>
#include <prometheus/collectable.h>

#include <cstdint>
#include <memory>
#include <string>

#include "contract/messages.h"
#include "trainer/collectives/collective.h"

namespace evenkeel::trainer {

struct ReplicaIdentity {
  std::string job;
  int rank = 0;
  int world_size = 1;
  std::string pod;
  std::string backend = "cpu";
  std::string version;
  std::int64_t restarts = 0;  // in its pod
};

class ReplicaMetrics {
 public:
  explicit ReplicaMetrics(const ReplicaIdentity& identity);
  ~ReplicaMetrics();

  std::shared_ptr<prometheus::Collectable> collectable() const;

  // A finished step: position, samples and times of `commit`.
  void on_step(const contract::StepPlan& plan, const contract::Commit& commit, double unix_seconds);
  // Times outside a step: of the last evaluation and checkpoint.
  void on_phases(const contract::PhaseSeconds& phases);
  // What the communicator has done since it was made; a new one follows when the group changes.
  void on_collectives(const Collective& collective);

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
  std::array<CollectiveCount, 4> seen_{};  // by CollectiveOp: of the present communicator
};

}  // namespace evenkeel::trainer
