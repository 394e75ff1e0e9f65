// A small bounded HTTP/1.1 server and client (Boost.Beast inside) for /healthz, /readyz, /metrics and the
// coordinator's status. Not for the API server: that is operator/kube. Limits: request head and body 16 KiB,
// `max_connections` at once, 5 s for a whole request, so that a half-sent request holds one slot for 5 s
// only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"

namespace evenkeel::base {

struct HttpRequest {
  std::string method;                          // "GET"
  std::string path;                            // without the query
  std::string query;                           // after '?'
  std::map<std::string, std::string> headers;  // names in lower case
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Called on the server's own threads, several at once: must be thread safe.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // an address of this machine; port 0 = any free one
  std::uint16_t port = 0;
  int threads = 2;
  int max_connections = 64;
  std::chrono::milliseconds request_timeout{5000};
};

class HttpServer {
 public:
  // Exact paths only; any other is 404, another method than GET or HEAD 405. Port taken: kAlreadyExists with
  // the port and what to do.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options,
                                                   std::map<std::string, HttpHandler> routes);
  virtual ~HttpServer() = default;  // stops: open connections are closed, threads joined
  virtual std::uint16_t port() const = 0;
};

// GET http://address:port/path. Whole call within `timeout`; body over max_bytes: kInvalidInput. `host` may
// be a name.
Result<HttpResponse> http_get(const std::string& host, std::uint16_t port, const std::string& path,
                              std::chrono::milliseconds timeout, std::size_t max_bytes);

}  // namespace evenkeel::base
