// HTTP to the API server, as an interface: one file implements it (transport_cpprest.cpp), transport_fake.h
// fails on demand. Used by kube/client alone. `send` may be called by many threads; a Stream belongs to one
// reader, but `cancel` may come from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace evenkeel::oper {

struct HttpCall {
  std::string method;  // GET, POST, PATCH, DELETE
  std::string target;  // path and query, encoded
  std::string body;
  std::string content_type;  // of `body`
  std::string
      authorization;  // value of the header; empty: none. Never sent to another host: redirects are errors
};

// What is known about a call when it is over. Only kNotSent promises that the server did nothing.
enum class Outcome {
  kAnswered,  // `status`, `headers`, `body` are valid, whatever the status says
  kNotSent,   // no connection: the request never left
  kUnknown,   // sent, or perhaps sent, and no whole answer came
  kTooLarge,  // the answer is over the cap
};

struct HttpReply {
  Outcome outcome = Outcome::kUnknown;
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string error;  // why there is no answer
};

// The body of a watch, by lines. Only complete lines come out; what a broken connection cut off is dropped.
class Stream {
 public:
  virtual ~Stream() = default;
  // Headers of the answer; for a status other than 200 `body` holds it.
  virtual const HttpReply& head() const = 0;
  // The next line without its end. kAborted: the server closed it in order; kDeadlineExceeded: silent for too
  // long or over its whole time; kInvalidInput: over a cap; kUnavailable: cut.
  virtual base::Result<std::string> next_line() = 0;
  // A blocked next_line returns soon.
  virtual void cancel() = 0;
};

struct WatchLimits {
  base::Duration deadline = std::chrono::seconds(100);   // for the whole stream
  base::Duration idle_limit = std::chrono::seconds(95);  // between two reads
  std::size_t max_line_bytes = 8u << 20;
  std::size_t max_buffered_bytes = 32u << 20;  // received and not read yet
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Returns by `deadline`, always. Bodies over `max_bytes` are kTooLarge.
  virtual HttpReply send(const HttpCall& call, base::Duration deadline, std::size_t max_bytes) = 0;
  // Opens a stream on a connection of its own. Never null: a failure is in head().outcome.
  virtual std::shared_ptr<Stream> watch(const HttpCall& call, const WatchLimits& limits) = 0;
};

}  // namespace evenkeel::oper
