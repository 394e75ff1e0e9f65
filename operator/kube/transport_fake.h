// A transport that does what a test says: answers by a handler, streams from scripted pieces. Thread safe as
// long as the handler is.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "operator/kube/line_framer.h"
#include "operator/kube/transport.h"

namespace evenkeel::oper {

inline HttpReply answered(int status, std::string body, std::map<std::string, std::string> headers = {}) {
  HttpReply reply;
  reply.outcome = Outcome::kAnswered;
  reply.status = status;
  reply.body = std::move(body);
  reply.headers = std::move(headers);
  return reply;
}

inline HttpReply failed_call(Outcome outcome) {
  HttpReply reply;
  reply.outcome = outcome;
  reply.error = "failed on demand";
  return reply;
}

class FakeStream : public Stream {
 public:
  FakeStream(HttpReply head, std::vector<std::string> pieces, base::ErrorCode end)
      : head_(std::move(head)), pieces_(pieces.begin(), pieces.end()), end_(end) {}
  const HttpReply& head() const override { return head_; }
  base::Result<std::string> next_line() override {
    while (true) {
      if (auto line = framer_.next()) return *line;
      if (pieces_.empty()) return base::Error{end_, "end of the scripted stream"};
      framer_.add(pieces_.front());
      pieces_.pop_front();
    }
  }
  void cancel() override { pieces_.clear(); }

 private:
  HttpReply head_;
  std::deque<std::string> pieces_;
  base::ErrorCode end_;
  LineFramer framer_{1u << 20};
};

class FakeTransport : public Transport {
 public:
  std::function<HttpReply(const HttpCall&)> on_send = [](const HttpCall&) {
    return failed_call(Outcome::kNotSent);
  };
  std::function<std::shared_ptr<Stream>(const HttpCall&)> on_watch = [](const HttpCall&) {
    return std::make_shared<FakeStream>(failed_call(Outcome::kNotSent), std::vector<std::string>{},
                                        base::ErrorCode::kUnavailable);
  };

  HttpReply send(const HttpCall& call, base::Duration, std::size_t) override {
    record(call);
    return on_send(call);
  }
  std::shared_ptr<Stream> watch(const HttpCall& call, const WatchLimits&) override {
    record(call);
    return on_watch(call);
  }
  std::vector<HttpCall> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  void record(const HttpCall& call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
  }
  mutable std::mutex mutex_;
  std::vector<HttpCall> calls_;
};

}  // namespace evenkeel::oper
