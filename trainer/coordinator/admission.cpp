#include "trainer/coordinator/admission.h"

#include "base/hash.h"

namespace evenkeel::trainer {

using base::Error;
using base::ErrorCode;
using contract::MessageType;

base::Status Admission::on_hello(const base::Json& payload) {
  EVENKEEL_ASSIGN(contract::Hello hello, contract::decode_hello(payload));
  if (hello.protocol != 1) {
    return Error{ErrorCode::kMismatch, "the peer speaks protocol " + std::to_string(hello.protocol) +
                                           ", this coordinator 1: use one trainer version for the whole job"};
  }
  if (hello.job_uid != job_uid_)
    return Error{ErrorCode::kPermissionDenied, "the peer belongs to another job"};
  if (hello.nonce_hex.size() != 64) return Error{ErrorCode::kCorruptData, "the peer's nonce is not 32 bytes"};
  hello_ = hello;
  challenge_ =
      contract::Challenge{nonce_hex_, contract::handshake_proof(key_, "coordinator", hello, hello.nonce_hex)};
  return {};
}

base::Result<std::optional<Admitted>> Admission::frame(const ControlFrame& frame) {
  if (!hello_) {
    if (frame.type != MessageType::kHello)
      return Error{ErrorCode::kCorruptData, "the first frame is not a Hello"};
    EVENKEEL_TRY(on_hello(frame.payload));
    return std::optional<Admitted>();
  }
  if (frame.type != MessageType::kJoin) return Error{ErrorCode::kCorruptData, "no Join follows the Hello"};
  // The proof first, alone: nothing else of a stranger's frame is looked at.
  const std::string expected = contract::handshake_proof(key_, "worker", *hello_, nonce_hex_);
  if (!base::equal_secrets(base::string_at(frame.payload, "proof"), expected)) {
    return Error{ErrorCode::kPermissionDenied,
                 "rank " + std::to_string(hello_->rank) + " does not hold this job's key"};
  }
  EVENKEEL_ASSIGN(contract::Join join, contract::decode_join(frame.payload));
  return std::optional<Admitted>(Admitted{*hello_, std::move(join)});
}

}  // namespace evenkeel::trainer
