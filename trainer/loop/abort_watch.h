// Carries an abort from the coordinator's connection to a rank that waits in the ring: a thread that sleeps
// until the waker is awake, then breaks the communicator. Lives from the making of the ring to its end.
#pragma once

#include <thread>

#include "base/socket.h"
#include "trainer/collectives/collective.h"

namespace evenkeel::trainer {

class AbortWatch {
 public:
  // Both must outlive this object.
  AbortWatch(const base::Waker& abort, Collective& collective);
  ~AbortWatch();
  AbortWatch(const AbortWatch&) = delete;
  AbortWatch& operator=(const AbortWatch&) = delete;

 private:
  base::Waker over_;
  std::thread thread_;
};

}  // namespace evenkeel::trainer
