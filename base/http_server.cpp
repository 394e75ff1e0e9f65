#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/http.h"
#include "base/log.h"
#include "base/socket.h"

namespace evenkeel::base {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::size_t kMaxRequestHeadBytes = 16 << 10;
constexpr std::chrono::milliseconds kAcceptPause{100};  // no descriptors left: give some time to come back
constexpr std::chrono::seconds kDrainTime{1};

using Routes = std::map<std::string, HttpHandler>;

HttpRequest plain_request(const http::request<http::empty_body>& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string::npos) request.query = target.substr(question + 1);
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::string& value = request.headers[name];
    value += (value.empty() ? "" : ", ") + std::string(field.value());
  }
  return request;
}

HttpResponse plain_text(int status, std::string body) {
  return {status, "text/plain; charset=utf-8", std::move(body)};
}

HttpResponse answer(const Routes& routes, const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    return plain_text(405,
                      "method " + request.method.substr(0, 32) + " is not served here, only GET and HEAD\n");
  }
  const auto route = routes.find(request.path);
  if (route == routes.end()) return plain_text(404, "nothing is served at this path\n");
  try {
    return route->second(request);
  } catch (const std::exception& exception) {
    log_error("a handler threw", {{"path", request.path}, {"what", exception.what()}});
    return plain_text(500, "internal error\n");
  }
}

// One connection: one request, one answer, closed. All of it runs on the connection's own strand, and no
// thread is held while bytes are missing.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Closed = std::function<void()>;

  Session(tcp::socket socket, const Routes& routes, std::chrono::milliseconds timeout)
      : stream_(std::move(socket)), routes_(routes) {
    // An absolute time for everything that follows: a client that drips bytes gains nothing.
    stream_.expires_after(timeout);
  }

  void start(Closed closed) {
    closed_ = std::move(closed);
    parser_.header_limit(kMaxRequestHeadBytes);
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      http::async_read_header(self->stream_, self->buffer_, self->parser_,
                              [self](beast::error_code error, std::size_t) { self->on_head(error); });
    });
  }

  // From any thread.
  void close() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->stream_.close(); });
  }

  // The head has not come yet: nothing is lost if this one makes room for another.
  bool is_waiting() const { return waiting_; }

 private:
  void on_head(beast::error_code error) {
    waiting_ = false;
    const auto& message = parser_.get();
    const bool is_head = message.method() == http::verb::head;
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return respond(plain_text(431, "the request's head is longer than 16 KiB\n"), false, true);
    }
    const bool has_body = !error && (parser_.chunked() || parser_.content_length().value_or(0) > 0);
    if (has_body || error == http::error::body_limit || error == http::error::unexpected_body) {
      return respond(plain_text(413, "a request must not have a body\n"), is_head, true);
    }
    if (error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
      return respond(plain_text(400, "not a request that this server understands\n"), false, true);
    }
    if (error) return finish();  // closed, reset or out of time
    respond(answer(routes_, plain_request(message)), is_head, false);
  }

  // `unread`: bytes of the client may be under way. Closing on them would send a reset, and that can overtake
  // the answer, so they are read and thrown away for a moment.
  void respond(HttpResponse response, bool is_head, bool unread) {
    response_.result(static_cast<unsigned>(response.status));
    response_.set(http::field::content_type, response.content_type);
    response_.set(http::field::cache_control, "no-store");
    if (response.status == 405) response_.set(http::field::allow, "GET, HEAD");
    response_.keep_alive(false);
    response_.content_length(response.body.size());
    if (!is_head) response_.body() = std::move(response.body);
    const auto done = [self = shared_from_this(), unread](beast::error_code error, std::size_t) {
      if (error || !unread) return self->finish();
      beast::error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      self->stream_.expires_after(kDrainTime);
      self->drain();
    };
    // The serializer writes the body whatever the method was: for HEAD, the head alone.
    if (is_head) {
      serializer_.emplace(response_);
      http::async_write_header(stream_, *serializer_, done);
    } else {
      http::async_write(stream_, response_, done);
    }
  }

  void drain() {
    stream_.async_read_some(asio::buffer(sink_),
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (error) return self->finish();
                              self->drain();
                            });
  }

  void finish() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.close();
    if (closed_) std::exchange(closed_, nullptr)();
  }

  beast::tcp_stream stream_;
  const Routes& routes_;
  beast::flat_buffer buffer_{kMaxRequestHeadBytes + 1024};  // the parser's limit is met first
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::array<char, 4096> sink_;
  std::atomic<bool> waiting_{true};
  Closed closed_;
};

class Server : public HttpServer {
 public:
  Server(HttpServerOptions options, Routes routes, Listener listener)
      : options_(std::move(options)),
        routes_(std::move(routes)),
        port_(listener.port()),
        acceptor_(context_),
        pause_(context_) {
    int family = AF_INET;
    socklen_t size = sizeof family;
    getsockopt(listener.fd(), SOL_SOCKET, SO_DOMAIN, &family, &size);
    acceptor_.assign(family == AF_INET6 ? tcp::v6() : tcp::v4(), listener.release());
  }

  void run() {
    accept();
    for (int i = 0; i < std::max(1, options_.threads); ++i) {
      threads_.emplace_back([this] { context_.run(); });
    }
  }

  ~Server() override {
    context_.stop();
    for (std::thread& thread : threads_) thread.join();
    sessions_.clear();
  }

  std::uint16_t port() const override { return port_; }

 private:
  using Sessions = std::list<std::shared_ptr<Session>>;

  void accept() {
    acceptor_.async_accept(asio::make_strand(context_), [this](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) admit(std::move(socket));
      if (!error || error == asio::error::connection_aborted) return accept();
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([this](beast::error_code stopped) {
        if (!stopped) accept();
      });
    });
  }

  void admit(tcp::socket socket) {
    std::unique_lock lock(mutex_);
    // Full: whoever has been silent longest goes, so that half-sent requests cannot keep a probe out. If all
    // are being answered, the new one goes.
    if (static_cast<int>(sessions_.size()) >= options_.max_connections && !evict()) return;
    const auto session = std::make_shared<Session>(std::move(socket), routes_, options_.request_timeout);
    sessions_.push_back(session);
    lock.unlock();
    session->start([this, id = session.get()] { forget(id); });
  }

  bool evict() {
    for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
      if (!(*at)->is_waiting()) continue;
      (*at)->close();
      sessions_.erase(at);
      return true;
    }
    return false;
  }

  void forget(const Session* session) {
    const std::lock_guard lock(mutex_);
    sessions_.remove_if([&](const auto& other) { return other.get() == session; });
  }

  const HttpServerOptions options_;
  const Routes routes_;
  const std::uint16_t port_;
  std::mutex mutex_;          // sessions_
  Sessions sessions_;         // oldest first
  asio::io_context context_;  // after what its handlers touch: it dies first
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options, Routes routes) {
  EVENKEEL_ASSIGN(Listener listener, Listener::open({options.address, options.port}));
  try {
    auto server = std::make_unique<Server>(std::move(options), std::move(routes), std::move(listener));
    server->run();
    return std::unique_ptr<HttpServer>(std::move(server));
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kUnavailable, std::string("cannot start the HTTP server: ") + exception.what()};
  }
}

}  // namespace evenkeel::base
