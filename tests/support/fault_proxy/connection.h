// One connection of a client: its requests one after the other, each carried to the API server and back as the plan
// says. Owned by proxy.cpp, one thread each.
#pragma once

#include <deque>
#include <optional>

#include "base/socket.h"
#include "tests/support/fault_proxy/http_bytes.h"
#include "tests/support/fault_proxy/traffic.h"
#include "tests/support/fault_proxy/upstream.h"

namespace evenkeel::support {

class Connection {
 public:
  Connection(base::Socket client, UpstreamTarget& target, Traffic& traffic, const base::Waker& stop)
      : client_(std::move(client)), target_(target), traffic_(traffic), stop_(stop) {}
  // Until the client goes, a fault ends the connection or the proxy stops.
  void run();

 private:
  struct Request {
    HttpHead head;
    std::string body;
    ProxyEntry entry;
  };
  struct Answer {
    HttpHead head;
    std::string body;
  };
  struct Event {
    std::string bytes;  // a line, with its end
    base::MonotonicTime arrived;
  };
  enum class Next { kGoOn, kEnd };
  enum class Read { kBytes, kNothing, kClosed };

  std::optional<Request> read_request();
  Next serve(Request& request);
  Next serve_watch(Request& request);
  Next finish(Request& request, Answer answer);
  Next answer_itself(Request& request);
  // Sends `bytes`, then ends the connection as the fault says.
  Next break_off(Request& request, const Fault& fault, std::string_view bytes);
  Next end(Request& request, const char* delivered, Next next);

  // The head of the API server's answer; its body is still to be read.
  std::optional<HttpHead> ask(const Request& request);
  std::optional<Answer> ask_whole(const Request& request);
  std::optional<Answer> read_whole(const Request& request, HttpHead head);
  bool connect_upstream();
  Read read_upstream(base::MonotonicTime deadline);

  Next carry_events(Request& request, BodyReader body);
  // Nothing: all that may go has gone.
  std::optional<Next> deliver_due(Request& request, std::deque<Event>& events, std::uint64_t& sent_bytes);
  bool send_event(const Fault& fault, const std::string& bytes);
  bool send_chunks(std::string_view bytes, std::uint64_t chunk_bytes);
  bool send_slowly(std::string_view bytes, std::int64_t ms);
  bool send(std::string_view bytes);
  bool hold_while_frozen(const Request& request);
  bool client_is_gone() const;
  // False: the client is gone or the proxy stops.
  bool rest(base::Duration time);
  void wait_for_the_client_to_go();

  base::Socket client_;
  UpstreamTarget& target_;
  Traffic& traffic_;
  const base::Waker& stop_;
  std::string in_;  // from the client, not used yet
  std::optional<Upstream> upstream_;
  std::string back_;  // from the API server, not used yet
};

}  // namespace evenkeel::support
