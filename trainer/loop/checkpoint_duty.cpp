#include "trainer/loop/checkpoint_duty.h"

#include "base/log.h"

namespace evenkeel::trainer {

base::Status CheckpointDuty::save(MemberClient& client, const CheckpointIdentity& identity,
                                  const JobPosition& position, Replica& replica, bool last) {
  if (!writer_) {
    contract::Checkpointed nothing;
    nothing.step = position.step;
    return client.checkpointed(nothing);
  }
  begun_step_ = position.step;
  writer_->begin(make_manifest(identity, position, replica), replica.weights(), replica.optimizer_state());
  return report(client, last);
}

base::Status CheckpointDuty::report(MemberClient& client, bool wait) {
  while (writer_) {
    const std::optional<SaveOutcome> outcome = wait ? writer_->wait() : writer_->poll();
    if (!outcome) break;
    EVENKEEL_TRY(client.checkpointed(describe(*outcome)));
  }
  return {};
}

contract::Checkpointed CheckpointDuty::describe(const SaveOutcome& outcome) {
  contract::Checkpointed message;
  message.step = outcome.step;
  message.seconds = outcome.copy_seconds + outcome.write_seconds;
  last_error_ = outcome.saved.ok() ? "" : outcome.saved.error().message;
  if (!outcome.saved.ok()) {
    message.error = last_error_;
    base::log_error("checkpoint not written; training goes on",
                    {{"step", message.step}, {"error", message.error}});
    return message;
  }
  message.directory = outcome.saved->directory;
  message.bytes = static_cast<std::int64_t>(outcome.saved->bytes);
  for (const std::string& warning : outcome.saved->warnings) base::log_warning(warning);
  base::log_info("checkpoint written", {{"step", message.step},
                                        {"directory", message.directory},
                                        {"bytes", message.bytes},
                                        {"copySeconds", outcome.copy_seconds},
                                        {"writeSeconds", outcome.write_seconds}});
  return message;
}

}  // namespace evenkeel::trainer
