// Lines of one rank, handed on whole: several processes that write to one pipe would cut each other's long lines.
// Made by the launcher for each process that it starts. One thread of its own, until the stream ends or this object
// goes.
#pragma once

#include <cstdio>
#include <string>
#include <thread>

#include "base/socket.h"

namespace evenkeel::trainer {

class OutputPump {
 public:
  // Reads `fd`, which must stay open until this object is gone. Each write to `out` is of whole lines.
  OutputPump(int fd, std::FILE* out);
  // What the process has left in the stream is still handed on; it is not waited for.
  ~OutputPump();
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

 private:
  void run();
  bool take();  // false: the end, or nothing is there
  void hand_on(std::size_t bytes);

  int fd_;
  std::FILE* out_;
  std::string text_;  // the beginning of a line
  base::Waker over_;
  std::thread thread_;
};

}  // namespace evenkeel::trainer
