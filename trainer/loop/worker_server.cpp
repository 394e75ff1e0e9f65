#include "trainer/loop/worker_server.h"

#include "base/files.h"

namespace evenkeel::trainer {

base::Result<std::unique_ptr<WorkerServer>> WorkerServer::start(const Settings& settings,
                                                                const ReplicaMetrics& metrics) {
  std::unique_ptr<WorkerServer> own(new WorkerServer);
  own->page_.add(metrics.collectable());
  own->page_.add(base::process_metrics());
  base::HttpServerOptions options;
  const bool launched = !settings.metrics_file.empty();  // then the pod's port is the launcher's
  options.address = launched ? "127.0.0.1" : settings.bind_address;
  options.port = static_cast<std::uint16_t>(launched ? 0 : settings.metrics_port);
  const auto ready = [server = own.get()](const base::HttpRequest&) {
    const bool yes = server->ready_.load();
    return base::HttpResponse{yes ? 200 : 503, "text/plain; charset=utf-8",
                              yes ? "ok\n" : "waiting for the other ranks\n"};
  };
  std::map<std::string, base::HttpHandler> routes;
  routes["/metrics"] = [server = own.get()](const base::HttpRequest&) {
    return base::HttpResponse{200, std::string(base::kMetricsContentType), server->page_.text()};
  };
  routes["/healthz"] = [](const base::HttpRequest&) {
    return base::HttpResponse{200, "text/plain; charset=utf-8", "ok\n"};
  };
  routes["/readyz"] = ready;
  EVENKEEL_ASSIGN(own->server_, base::HttpServer::start(options, std::move(routes)));
  if (launched) {
    EVENKEEL_TRY(base::write_atomic(base::real_files(), settings.metrics_file, std::to_string(own->server_->port())));
  }
  return own;
}

}  // namespace evenkeel::trainer
