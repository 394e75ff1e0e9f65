// The coordinator's half of the handshake, for one connection: Hello -> Challenge -> Join. Until it is
// through, the peer is a stranger: frames of at most 4 KiB, little time, and no answer that tells anything.
// Pure but for the nonce.
#pragma once

#include <optional>
#include <string>

#include "contract/messages.h"
#include "trainer/coordinator/control_channel.h"

namespace evenkeel::trainer {

struct Admitted {
  contract::Hello hello;
  contract::Join join;
};

class Admission {
 public:
  Admission(std::string key, std::string job_uid, std::string nonce_hex)
      : key_(std::move(key)), job_uid_(std::move(job_uid)), nonce_hex_(std::move(nonce_hex)) {}

  // After a good Hello; to be sent once.
  const std::optional<contract::Challenge>& challenge() const { return challenge_; }
  // The next frame of the peer. Join verified: who it is. Error: close without a word (kPermissionDenied:
  // wrong key).
  base::Result<std::optional<Admitted>> frame(const ControlFrame& frame);

 private:
  base::Status on_hello(const base::Json& payload);

  std::string key_, job_uid_, nonce_hex_;
  std::optional<contract::Hello> hello_;
  std::optional<contract::Challenge> challenge_;
};

}  // namespace evenkeel::trainer
