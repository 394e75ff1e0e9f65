// Checkpoints as a duty of the ranks: one writes, beside the training, and tells the coordinator how it went;
// the others say that they have nothing to write. Used by the loop's thread.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "contract/messages.h"
#include "trainer/checkpoint/checkpoint_writer.h"
#include "trainer/coordinator/member_client.h"
#include "trainer/loop/job_state.h"
#include "trainer/loop/replica.h"

namespace evenkeel::trainer {

class CheckpointDuty {
 public:
  // Of the rank that writes. files must outlive it. Every other rank has the default one.
  CheckpointDuty(base::Files& files, const contract::CheckpointSpec& spec, PublishGate gate)
      : writer_(std::make_unique<CheckpointWriter>(files, spec.path, spec.keep, std::move(gate))) {}
  CheckpointDuty() = default;

  // After a committed step that ends with a checkpoint. Only the copy of the state holds the caller up;
  // `last`: the run's end depends on this one, so it is waited for.
  base::Status save(MemberClient& client, const CheckpointIdentity& identity, const JobPosition& position,
                    Replica& replica, bool last);
  // Tells of the saves that have ended since; `wait`: of the running one too.
  base::Status report(MemberClient& client, bool wait);
  bool writes() const { return writer_ != nullptr; }
  // Newest step that was begun to be written; 0: none.
  std::int64_t begun_step() const { return begun_step_; }
  // Why the newest save failed; empty where it did not.
  const std::string& last_error() const { return last_error_; }

 private:
  contract::Checkpointed describe(const SaveOutcome& outcome);

  std::unique_ptr<CheckpointWriter> writer_;  // null: this rank does not write
  std::string last_error_;
  std::int64_t begun_step_ = 0;
};

}  // namespace evenkeel::trainer
