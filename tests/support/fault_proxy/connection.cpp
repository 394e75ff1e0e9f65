#include "tests/support/fault_proxy/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>

namespace evenkeel::support {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kAnswerLimit = 120s;  // the API server's own limit is 60 s
constexpr base::Duration kSendLimit = 120s;    // a client that reads nothing
constexpr base::Duration kLookAgain = 20ms;    // at the plan and at the client, while something is held back

base::MonotonicTime in(base::Duration time) {
  return base::real_clock().now() + time;
}

HttpHead with_length(HttpHead head, std::size_t bytes) {
  head.remove_field("transfer-encoding");
  head.remove_field("content-length");
  head.fields.emplace_back("Content-Length", std::to_string(bytes));
  return head;
}

HttpHead with_chunks(HttpHead head) {
  head.remove_field("transfer-encoding");
  head.remove_field("content-length");
  head.fields.emplace_back("Transfer-Encoding", "chunked");
  return head;
}

bool ends_connection(Action action) {
  return action == Action::kReset || action == Action::kClose || action == Action::kSilence;
}

std::string status_object(int status) {
  return base::dump_json({{"kind", "Status"},
                          {"apiVersion", "v1"},
                          {"status", "Failure"},
                          {"reason", status == 429 ? "TooManyRequests" : "InternalError"},
                          {"message", "a fault of the plan"},
                          {"code", status}});
}

}  // namespace

void Connection::run() {
  while (std::optional<Request> request = read_request())
    if (serve(*request) == Next::kEnd) return;
}

std::optional<Connection::Request> Connection::read_request() {
  std::optional<HttpHead> head;
  std::optional<BodyReader> reader;
  Request request;
  while (true) {
    if (!head) {
      auto taken = take_head(in_);
      if (!taken.ok()) return std::nullopt;
      head = std::move(*taken);
      if (head) {
        auto made = BodyReader::of(*head, true);
        if (!made.ok()) return std::nullopt;
        reader = *made;
      }
    }
    if (head) {
      auto piece = reader->take(in_);
      if (!piece.ok()) return std::nullopt;
      request.body += *piece;
      if (reader->done()) break;
    }
    std::string bytes(16384, 0);
    const auto count = client_.receive_some(std::as_writable_bytes(std::span(bytes)), in(1h), &stop_);
    if (!count.ok() || *count == 0) return std::nullopt;
    in_.append(bytes, 0, *count);
  }
  request.head = std::move(*head);
  request.entry.seconds = traffic_.seconds();
  request.entry.request = facts_of(request.head.method(), request.head.target(), request.body);
  request.entry.count = traffic_.count_in(request.entry.request);
  return request;
}

Connection::Next Connection::end(Request& request, const char* delivered, Next next) {
  request.entry.delivered = delivered;
  traffic_.add(request.entry);
  return next;
}

Connection::Next Connection::serve(Request& request) {
  Fault& fault = request.entry.fault = traffic_.decide(request.entry.request, request.entry.count);
  if (fault.when == When::kBefore) {
    if (fault.action == Action::kStatus) return answer_itself(request);
    if (ends_connection(fault.action)) return break_off(request, fault, "");
    if (fault.action == Action::kFreeze && !hold_while_frozen(request)) return end(request, "gone", Next::kEnd);
  }
  if (request.entry.request.verb == "watch") return serve_watch(request);
  std::optional<Answer> answer = ask_whole(request);
  if (!answer) return end(request, "cut", Next::kEnd);
  request.entry.status = answer->head.status();
  return finish(request, std::move(*answer));
}

Connection::Next Connection::finish(Request& request, Answer answer) {
  const Fault& fault = request.entry.fault;
  if (fault.action == Action::kStatus) return answer_itself(request);
  const std::string head = with_length(answer.head, answer.body.size()).text();
  if (ends_connection(fault.action) && fault.when == When::kAfter) {
    const std::string part = fault.after_bytes == 0 ? "" : head + answer.body.substr(0, fault.after_bytes);
    return break_off(request, fault, part);
  }
  bool sent = false;
  if (fault.action == Action::kDrip) {
    sent = send_slowly(head + answer.body, fault.ms);
  } else if (fault.action == Action::kSplit) {
    sent = send(with_chunks(answer.head).text()) && send_chunks(answer.body, fault.bytes) && send(kLastChunk);
  } else {
    const bool held = fault.action == Action::kFreeze && fault.when == When::kAfter;
    const bool late = fault.action == Action::kLag;
    sent = (!held || hold_while_frozen(request)) && (!late || rest(std::chrono::milliseconds(fault.ms))) &&
           send(head + answer.body);
  }
  return end(request, sent ? "whole" : "gone", sent ? Next::kGoOn : Next::kEnd);
}

Connection::Next Connection::answer_itself(Request& request) {
  const Fault& fault = request.entry.fault;
  const std::string body = fault.body.empty() ? status_object(fault.status) : fault.body;
  HttpHead head;
  head.first_line = "HTTP/1.1 " + std::to_string(fault.status) + " Fault";
  head.fields.emplace_back("Content-Type", fault.content_type);
  if (fault.retry_after_seconds) head.fields.emplace_back("Retry-After", std::to_string(*fault.retry_after_seconds));
  const bool sent = send(with_length(head, body.size()).text() + body);
  return end(request, sent ? "whole" : "gone", sent ? Next::kGoOn : Next::kEnd);
}

Connection::Next Connection::break_off(Request& request, const Fault& fault, std::string_view bytes) {
  if (!bytes.empty() && !send(bytes)) return end(request, "gone", Next::kEnd);
  end(request, "cut", Next::kEnd);  // now: silence may last
  if (fault.action == Action::kSilence) wait_for_the_client_to_go();
  if (fault.action == Action::kReset) {
    const linger at_once{1, 0};
    setsockopt(client_.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  } else {
    shutdown(client_.fd(), SHUT_WR);
  }
  client_.close();
  return Next::kEnd;
}

// ---- the API server's side ----

Connection::Read Connection::read_upstream(base::MonotonicTime deadline) {
  auto bytes = upstream_->receive(deadline, &stop_);
  if (!bytes.ok())
    return bytes.error().code == base::ErrorCode::kDeadlineExceeded ? Read::kNothing : Read::kClosed;
  if (bytes->empty()) return Read::kClosed;
  back_ += *bytes;
  return Read::kBytes;
}

// A kept connection that the server has closed meanwhile must not look like a lost request.
bool Connection::connect_upstream() {
  if (upstream_ && read_upstream(in(0s)) == Read::kNothing && back_.empty()) return true;
  upstream_.reset();
  back_.clear();
  auto made = Upstream::connect(target_, in(10s), &stop_);
  if (made.ok()) upstream_ = std::move(*made);
  return made.ok();
}

std::optional<HttpHead> Connection::ask(const Request& request) {
  HttpHead head = request.head;
  head.remove_field("host");
  head.fields.emplace_back("Host", target_.host_field());
  const std::string authorization = target_.authorization();
  if (!authorization.empty() && !head.field("authorization")) head.fields.emplace_back("Authorization", authorization);
  if (!request.body.empty() || head.field("content-length")) head = with_length(head, request.body.size());
  if (!connect_upstream()) return std::nullopt;
  const base::MonotonicTime deadline = in(kAnswerLimit);
  if (!upstream_->send(head.text() + request.body, deadline, &stop_).ok()) return std::nullopt;
  while (true) {
    auto taken = take_head(back_);
    if (!taken.ok()) return std::nullopt;
    if (taken->has_value() && (*taken)->status() >= 200) return std::move(**taken);
    if (!taken->has_value() && read_upstream(deadline) != Read::kBytes) return std::nullopt;
  }
}

std::optional<Connection::Answer> Connection::ask_whole(const Request& request) {
  std::optional<HttpHead> head = ask(request);
  if (head) {
    std::optional<Answer> answer = read_whole(request, std::move(*head));
    if (answer) return answer;
  }
  upstream_.reset();
  return std::nullopt;
}

std::optional<Connection::Answer> Connection::read_whole(const Request& request, HttpHead head) {
  const int status = head.status();
  const bool no_body = request.entry.request.method == "HEAD" || status == 204 || status == 304;
  auto body = BodyReader::of(head, false, no_body);
  if (!body.ok()) return std::nullopt;
  Answer answer{std::move(head), ""};
  const base::MonotonicTime deadline = in(kAnswerLimit);
  while (true) {
    auto piece = body->take(back_);
    if (!piece.ok()) return std::nullopt;
    answer.body += *piece;
    if (body->done()) return answer;
    const Read read = read_upstream(deadline);
    if (read == Read::kBytes) continue;
    upstream_.reset();
    if (read == Read::kClosed && body->closed().ok()) return answer;
    return std::nullopt;
  }
}

// ---- watches ----

Connection::Next Connection::serve_watch(Request& request) {
  std::optional<HttpHead> head = ask(request);
  if (!head) {
    upstream_.reset();
    return end(request, "cut", Next::kEnd);
  }
  request.entry.status = head->status();
  const Fault& fault = request.entry.fault;
  if (head->status() != 200 || fault.action == Action::kStatus) {
    std::optional<Answer> answer;
    // An open stream has no end to wait for.
    if (head->status() != 200) answer = read_whole(request, std::move(*head));
    if (!answer || fault.action == Action::kStatus) upstream_.reset();
    if (!answer && fault.action != Action::kStatus) return end(request, "cut", Next::kEnd);
    return finish(request, answer ? std::move(*answer) : Answer{});
  }
  auto body = BodyReader::of(*head, false);
  if (!body.ok() || !send(with_chunks(*head).text())) return end(request, "gone", Next::kEnd);
  end(request, "opened", Next::kGoOn);
  return carry_events(request, *body);
}

Connection::Next Connection::carry_events(Request& request, BodyReader body) {
  std::deque<Event> events;
  std::string partial;  // of a line
  std::uint64_t sent_bytes = 0;
  bool open = true, cut = false;
  while (true) {
    if (const auto over = deliver_due(request, events, sent_bytes)) return *over;
    if (!open && events.empty()) {
      const bool sent = !cut && send(kLastChunk);
      return end(request, sent ? "whole" : "cut", sent ? Next::kGoOn : Next::kEnd);
    }
    if (open) {
      const Read read = back_.empty() ? read_upstream(in(kLookAgain)) : Read::kBytes;
      auto piece = body.take(back_);
      cut = !piece.ok() || (read == Read::kClosed && !body.closed().ok());
      open = !cut && !body.done();
      if (piece.ok()) partial += *piece;
      for (std::size_t at = 0; (at = partial.find('\n')) != std::string::npos; partial.erase(0, at + 1))
        events.push_back({partial.substr(0, at + 1), in(0s)});
      if (!open && !partial.empty()) events.push_back({std::exchange(partial, ""), in(0s)});
      if (!open) upstream_.reset();
    } else if (!rest(kLookAgain)) {
      return end(request, "gone", Next::kEnd);
    }
    if (client_is_gone()) return end(request, "gone", Next::kEnd);
  }
}

std::optional<Connection::Next> Connection::deliver_due(Request& request, std::deque<Event>& events,
                                                        std::uint64_t& sent_bytes) {
  while (true) {
    const Fault fault = traffic_.decide(request.entry.request, request.entry.count);
    request.entry.fault = fault;
    const bool breaks = ends_connection(fault.action) && fault.when == When::kAfter;
    if (breaks && sent_bytes >= fault.after_bytes) return break_off(request, fault, "");
    if (events.empty() || fault.action == Action::kFreeze || fault.action == Action::kWithhold) return std::nullopt;
    const Event& event = events.front();
    if (fault.action == Action::kLag && in(0s) < event.arrived + std::chrono::milliseconds(fault.ms)) return std::nullopt;
    // In the middle of a chunk: its size has been said already.
    if (breaks && sent_bytes + event.bytes.size() > fault.after_bytes) {
      const std::string chunk = as_chunk(event.bytes);
      const std::size_t data = chunk.find("\r\n") + 2;
      return break_off(request, fault, std::string_view(chunk).substr(0, data + (fault.after_bytes - sent_bytes)));
    }
    if (!send_event(fault, event.bytes)) return end(request, "gone", Next::kEnd);
    sent_bytes += event.bytes.size();
    events.pop_front();
  }
}

bool Connection::send_event(const Fault& fault, const std::string& bytes) {
  if (fault.action == Action::kDrip) return send_slowly(as_chunk(bytes), fault.ms);
  return send_chunks(bytes, fault.action == Action::kSplit ? fault.bytes : bytes.size());
}

// ---- the client's side ----

bool Connection::send(std::string_view bytes) {
  return client_.send_all(std::as_bytes(std::span(bytes)), in(kSendLimit), &stop_).ok();
}

bool Connection::send_chunks(std::string_view bytes, std::uint64_t chunk_bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, chunk_bytes);
    if (!send(as_chunk(piece))) return false;
    bytes.remove_prefix(piece.size());
  }
  return true;
}

bool Connection::send_slowly(std::string_view bytes, std::int64_t ms) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (!send(bytes.substr(i, 1)) || !rest(std::chrono::milliseconds(ms))) return false;
  return true;
}

bool Connection::hold_while_frozen(const Request& request) {
  while (traffic_.decide(request.entry.request, request.entry.count).action == Action::kFreeze)
    if (!rest(kLookAgain)) return false;
  return true;
}

bool Connection::client_is_gone() const {
  char one = 0;
  const ssize_t count = recv(client_.fd(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

bool Connection::rest(base::Duration time) {
  const base::MonotonicTime until = in(time);
  while (true) {
    if (client_is_gone()) return false;
    const base::Duration left = std::min<base::Duration>(until - in(0s), kLookAgain);
    pollfd stop{stop_.fd(), POLLIN, 0};
    const int wait_ms = static_cast<int>(std::max<long>(0, std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    if (poll(&stop, 1, wait_ms) > 0) return false;
    if (in(0s) >= until) return true;
  }
}

void Connection::wait_for_the_client_to_go() {
  std::string bytes(4096, 0);
  while (true) {
    const auto count = client_.receive_some(std::as_writable_bytes(std::span(bytes)), in(1h), &stop_);
    if (!count.ok() || *count == 0) return;
  }
}

}  // namespace evenkeel::support
