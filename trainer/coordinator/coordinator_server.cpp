#include "trainer/coordinator/coordinator_server.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/http.h"
#include "base/log.h"
#include "base/metrics.h"
#include "contract/report.h"
#include "trainer/coordinator/admission.h"
#include "trainer/coordinator/control_channel.h"
#include "trainer/coordinator/coordination.h"
#include "trainer/coordinator/coordinator_metrics.h"

namespace evenkeel::trainer {
namespace {

using contract::MessageType;

// A stranger has this long for its Hello, and then for its Join (a starved worker is slow, but it comes
// again).
constexpr double kHelloSeconds = 1.0;
constexpr double kJoinSeconds = 10.0;
// After the last message to a peer: it reads, closes, and we see it.
constexpr double kCloseSeconds = 1.0;
constexpr std::size_t kMaxStrangers = 64;
// poll() said that one is there; it may have gone meanwhile.
constexpr base::Duration kAcceptTime = std::chrono::milliseconds(10);
// A Join names every layer; more than this no model needs.
constexpr std::size_t kMaxJoinBytes = 256u << 10;

struct Connection {
  enum class State { kStranger, kMember, kClosing };
  ConnectionId id = 0;
  ControlChannel channel;
  Admission admission;
  State state = State::kStranger;
  double deadline = 0;  // kStranger, kClosing
  std::string broken;   // not empty: to be dropped, and why
};

class Server {
 public:
  explicit Server(const CoordinatorOptions& options)
      : options_(options),
        metrics_(options.config, base::real_clock()),
        coordination_(options.config, now(), &metrics_) {}

  base::Status listen();
  int run();

 private:
  static double now() { return base::seconds(base::real_clock().now().time_since_epoch()); }

  base::Status serve_http();
  std::vector<pollfd> polled();
  int timeout_ms();
  void accept_one();
  void read(Connection& connection);
  void handle(Connection& connection, const ControlFrame& frame);
  void deliver();
  void beat();
  void drop_the_broken();
  void look_at_the_size();
  std::string report_text();
  void leave();

  const CoordinatorOptions& options_;
  CoordinatorMetrics metrics_;
  std::mutex mutex_;  // HTTP's threads read coordination_
  Coordination coordination_;
  base::MetricsPage page_;
  base::Listener listener_;
  std::unique_ptr<base::HttpServer> http_;
  std::list<Connection> connections_;
  ConnectionId next_id_ = 1;
  double next_beat_ = 0;
  double next_look_ = 0;
  std::string wanted_text_;  // as last read
  bool stop_seen_ = false;
};

base::Status Server::listen() {
  EVENKEEL_ASSIGN(listener_, base::Listener::open({options_.bind_address, options_.control_port}));
  EVENKEEL_TRY(serve_http());
  base::log_info("coordinator listens", {{"address", options_.bind_address},
                                         {"controlPort", listener_.port()},
                                         {"metricsPort", http_->port()},
                                         {"ranks", options_.config.ranks},
                                         {"attempt", options_.config.attempt}});
  if (options_.on_listening) options_.on_listening(listener_.port(), http_->port());
  return {};
}

base::Status Server::serve_http() {
  page_.add(metrics_.registry());
  page_.add(base::process_metrics());
  const auto text = [](std::string body) {
    return base::HttpResponse{200, "text/plain; charset=utf-8", std::move(body)};
  };
  std::map<std::string, base::HttpHandler> routes;
  routes["/healthz"] = [text](const base::HttpRequest&) { return text("ok\n"); };
  routes["/readyz"] = [text](const base::HttpRequest&) { return text("ok\n"); };
  routes["/metrics"] = [this](const base::HttpRequest&) {
    return base::HttpResponse{200, std::string(base::kMetricsContentType), page_.text()};
  };
  routes[contract::kReportPath] = [this](const base::HttpRequest&) {
    return base::HttpResponse{200, "application/json", report_text()};
  };
  base::HttpServerOptions http;
  http.address = options_.bind_address;
  http.port = options_.metrics_port;
  EVENKEEL_ASSIGN(http_, base::HttpServer::start(http, std::move(routes)));
  return {};
}

std::string Server::report_text() {
  const std::lock_guard lock(mutex_);
  return base::dump_json(contract::to_json(coordination_.report(now())));
}

int Server::run() {
  while (true) {
    std::vector<pollfd> fds = polled();
    ::poll(fds.data(), fds.size(), timeout_ms());
    const std::lock_guard lock(mutex_);
    if (fds[0].revents != 0) accept_one();
    if (fds[1].revents != 0 && !stop_seen_) {
      stop_seen_ = true;
      coordination_.stop("SIGTERM", now());
    }
    // By descriptor: accept_one() has added connections behind these.
    std::size_t i = 2;
    for (auto at = connections_.begin(); i < fds.size(); ++at, ++i) {
      if (fds[i].revents != 0) read(*at);
    }
    look_at_the_size();
    coordination_.tick(now());
    deliver();
    beat();
    drop_the_broken();
    deliver();
    if (coordination_.done(now())) break;
  }
  leave();
  return coordination_.exit_code();
}

std::vector<pollfd> Server::polled() {
  std::vector<pollfd> fds{{listener_.fd(), POLLIN, 0},
                          {options_.stop != nullptr && !stop_seen_ ? options_.stop->fd() : -1, POLLIN, 0}};
  for (const Connection& connection : connections_) {
    const short out = connection.channel.has_pending() ? POLLOUT : 0;
    fds.push_back({connection.channel.fd(), static_cast<short>(POLLIN | out), 0});
  }
  return fds;
}

int Server::timeout_ms() {
  const double t = now();
  double wait = std::min(coordination_.next_deadline_in(t), next_beat_ - t);
  for (const Connection& connection : connections_) {
    if (connection.state != Connection::State::kMember) wait = std::min(wait, connection.deadline - t);
  }
  // done() waits for nothing that poll could see: look at least twice a second.
  return static_cast<int>(std::ceil(std::clamp(wait, 0.0, 0.5) * 1000));
}

// One a turn: poll() comes back at once while more are waiting.
void Server::accept_one() {
  auto socket = listener_.accept(base::real_clock().now() + kAcceptTime, nullptr);
  if (!socket.ok()) return;  // it went away again
  Connection connection{
      next_id_++,
      ControlChannel(std::move(*socket)),
      Admission(options_.key, options_.config.job_uid, base::to_hex(base::random_bytes(32))),
      Connection::State::kStranger,
      now() + kHelloSeconds,
      ""};
  connections_.push_back(std::move(connection));
  const auto is_stranger = [](const Connection& c) {
    return c.state == Connection::State::kStranger && c.broken.empty();
  };
  const auto strangers = std::count_if(connections_.begin(), connections_.end(), is_stranger);
  if (static_cast<std::size_t>(strangers) <= kMaxStrangers) return;
  std::find_if(connections_.begin(), connections_.end(), is_stranger)->broken =
      "too many connections that have not proved anything";
}

void Server::read(Connection& connection) {
  const base::Status flushed = connection.channel.flush();
  const base::Status read = connection.channel.read_available();
  // What came before the end counts: a Failure says more than the closed connection behind it.
  while (connection.broken.empty()) {
    auto frame = connection.channel.next_frame();
    if (!frame.ok()) connection.broken = frame.error().message;
    if (!frame.ok() || !frame->has_value()) break;
    handle(connection, **frame);
  }
  if (!connection.broken.empty()) return;
  if (!read.ok()) {
    connection.broken = read.error().message;
  } else if (!flushed.ok()) {
    connection.broken = flushed.error().message;
  }
}

void Server::handle(Connection& connection, const ControlFrame& frame) {
  if (connection.state == Connection::State::kClosing) return;
  if (connection.state == Connection::State::kMember) {
    return coordination_.received(connection.id, frame.type, frame.payload, now());
  }
  const bool first = !connection.admission.challenge().has_value();
  auto admitted = connection.admission.frame(frame);
  if (!admitted.ok()) {
    connection.broken = admitted.error().message;
    return;
  }
  if (admitted->has_value()) {
    connection.state = Connection::State::kMember;
    connection.channel.trust_peer();
    return coordination_.joined(connection.id, (*admitted)->hello, (*admitted)->join, now());
  }
  if (!first) return;
  connection.deadline = now() + kJoinSeconds;
  connection.channel.set_max_payload(kMaxJoinBytes);
  const base::Status sent =
      connection.channel.send(MessageType::kChallenge, to_json(*connection.admission.challenge()));
  if (!sent.ok()) connection.broken = sent.error().message;
}

void Server::deliver() {
  for (Outgoing& message : coordination_.take_outgoing()) {
    const auto at = std::find_if(connections_.begin(), connections_.end(),
                                 [&](const Connection& c) { return c.id == message.to; });
    if (at == connections_.end() || !at->broken.empty() || at->state != Connection::State::kMember) continue;
    const base::Status sent = at->channel.send(message.type, message.payload);
    if (!sent.ok()) at->broken = sent.error().message;
    if (!message.close_after) continue;
    at->state = Connection::State::kClosing;
    at->deadline = now() + kCloseSeconds;
    if (!at->channel.has_pending()) at->channel.finish_sending();
  }
}

void Server::beat() {
  if (now() < next_beat_) return;
  next_beat_ = now() + options_.config.spec.restart.failure_detection_seconds / 8.0;
  for (Connection& connection : connections_) {
    if (connection.state != Connection::State::kMember || !connection.broken.empty()) continue;
    const base::Status sent =
        connection.channel.send(MessageType::kHeartbeat, to_json(contract::Heartbeat{}));
    if (!sent.ok()) connection.broken = sent.error().message;
  }
}

void Server::drop_the_broken() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (at->broken.empty() && at->state != Connection::State::kMember && now() >= at->deadline) {
      at->broken = "no proof of the job's key in the time given";
    }
    if (at->broken.empty()) {
      ++at;
      continue;
    }
    if (at->state == Connection::State::kStranger) {
      base::log_warning("a connection was closed before it proved anything",
                        {{"peer", at->channel.peer()}, {"reason", at->broken}});
    }
    if (at->state == Connection::State::kMember) coordination_.disconnected(at->id, at->broken, now());
    at = connections_.erase(at);
  }
}

// A mounted ConfigMap: written by the kubelet some time after the operator, so it is looked at now and then.
void Server::look_at_the_size() {
  constexpr double kLookSeconds = 0.5;
  constexpr std::size_t kMaxDigits = 16;
  if (options_.wanted_file.empty() || now() < next_look_) return;
  next_look_ = now() + kLookSeconds;
  const base::Result<std::string> text = base::real_files().read(options_.wanted_file, kMaxDigits);
  if (!text.ok() || *text == wanted_text_) return;
  wanted_text_ = *text;
  const contract::WorkersSpec& workers = options_.config.spec.workers;
  int replicas = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), replicas);
  const bool is_number = error == std::errc() && (end == text->data() + text->size() || *end == '\n');
  if (!is_number || replicas < 1 || replicas > workers.most()) {
    base::log_warning("the wanted number of workers cannot be read; the size stays",
                      {{"file", options_.wanted_file}, {"content", *text}, {"most", workers.most()}});
    return;
  }
  coordination_.set_wanted(replicas * workers.devices_per_replica, now());
}

// The last report, where Kubernetes and trainer/local look for it.
void Server::leave() {
  const contract::JobReport report = coordination_.report(now());
  if (options_.termination_log.empty()) return;
  const std::string text = contract::termination_message(report);
  const std::array<std::string_view, 1> pieces{text};
  const base::Status written = base::real_files().write_synced(options_.termination_log, pieces);
  if (!written.ok())
    base::log_warning("the last report was not written", {{"reason", written.error().message}});
}

}  // namespace

int run_coordinator(const CoordinatorOptions& options) {
  Server server(options);
  const base::Status listening = server.listen();
  if (!listening.ok()) {
    base::log_error("the coordinator cannot start", {{"reason", listening.error().message}});
    return static_cast<int>(contract::exit_code_of(listening.error().code));
  }
  return server.run();
}

}  // namespace evenkeel::trainer
