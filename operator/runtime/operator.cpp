#include "operator/runtime/operator.h"

#include <atomic>
#include <thread>

#include "base/http.h"
#include "base/log.h"
#include "base/metrics.h"
#include "contract/labels.h"
#include "operator/act/actor.h"
#include "operator/kube/list_watch.h"
#include "operator/runtime/controller.h"
#include "operator/runtime/job_metrics.h"
#include "operator/runtime/operator_metrics.h"

namespace evenkeel::oper {
namespace {

constexpr int kReportThreads = 2;
// A worker that has not come back for this long is stuck: /healthz says so. Longer than all tries of one
// request.
constexpr double kStuckSeconds = 900;
constexpr base::Duration kVersionTries = std::chrono::seconds(2);

const char* result_name(RunResult result) {
  switch (result) {
    case RunResult::kSuccess:
      return "success";
    case RunResult::kError:
      return "error";
    case RunResult::kRequeue:
      return "requeue";
    case RunResult::kRequeueAfter:
      return "requeue_after";
  }
  return "error";
}

}  // namespace

struct Operator::Impl {
  OperatorOptions options;
  base::Clock& clock;
  OperatorMetrics metrics;
  ApiClient client;
  Stores stores;
  Expectations expectations;
  EventRecorder events;
  WorkQueue queue;
  ReportPoller reports;
  Actor actor;
  Controller controller;
  std::vector<std::unique_ptr<ListWatch>> watches;
  std::vector<std::thread> threads;
  base::MetricsPage page;
  std::unique_ptr<base::HttpServer> server;
  std::atomic<bool> stopped{false};

  Impl(Transport& transport, TokenSource& tokens, base::Clock& clock_in, OperatorOptions options_in)
      : options(std::move(options_in)),
        clock(clock_in),
        metrics(clock, options.api_host, options.workers),
        client(transport, tokens, clock, options.client, &metrics),
        events(client, options.instance),
        queue(clock, &metrics),
        reports(clock, fetch_report, [this](const std::string& key) { queue.add(key); }),
        actor(client, stores, expectations, &events,
              [this](const std::string& operation, const std::string& result) {
                metrics.pod_operation(operation, result);
              }),
        controller({client, stores, expectations, actor, reports,
                    [this](const std::string& name_space, const std::string& result) {
                      metrics.job_finished(name_space, result);
                    }},
                   ReconcileOptions{options.trainer_image, options.pod_defaults}) {}

  std::vector<std::string> scopes() const {
    return options.namespaces.empty() ? std::vector<std::string>{""} : options.namespaces;
  }

  // Every change wakes the job that it belongs to; what changed is not passed on.
  void connect_stores() {
    stores.jobs.set_handler([this](const StoreChange& change) {
      if (change.type == ChangeType::kAdded) metrics.namespace_seen(change.name_space);
      expectations.saw_job(change.uid, [&](const std::string& expected) {
        return change.resource_version == expected ||
               stores.jobs.compare_versions(change.resource_version, expected) > 0;
      });
      queue.add(change.name_space + "/" + change.name);
    });
    for (ObjectStore* store : {&stores.pods, &stores.services, &stores.config_maps}) {
      store->set_handler([this](const StoreChange& change) {
        expectations.saw(change.uid, change.deleting);
        if (!change.job_name.empty()) queue.add(change.name_space + "/" + change.job_name);
      });
    }
  }

  void make_watches() {
    const std::string ours = contract::kLabelJobUid;  // only what carries a job's UID
    for (const std::string& scope : scopes()) {
      watches.push_back(std::make_unique<ListWatch>(client, ListWatchConfig{trainingjobs(), scope, ""},
                                                    stores.jobs, &metrics));
      watches.push_back(
          std::make_unique<ListWatch>(client, ListWatchConfig{pods(), scope, ours}, stores.pods, &metrics));
      watches.push_back(std::make_unique<ListWatch>(client, ListWatchConfig{services(), scope, ours},
                                                    stores.services, &metrics));
      watches.push_back(std::make_unique<ListWatch>(client, ListWatchConfig{config_maps(), scope, ours},
                                                    stores.config_maps, &metrics));
    }
  }

  bool synced() const {
    for (const std::string& scope : scopes())
      for (const ObjectStore* store : {&stores.jobs, &stores.pods, &stores.services, &stores.config_maps})
        if (!store->synced(scope)) return false;
    return true;
  }

  // From Kubernetes 1.35 on resourceVersions may be compared. Unknown: equality only.
  void learn_version() {
    while (!stopped) {
      const ApiReply reply = client.version();
      if (reply.ok()) {
        const int minor = std::atoi(base::string_at(reply.object, "minor").c_str());
        const bool comparable = base::string_at(reply.object, "major") == "1" && minor >= 35;
        for (ObjectStore* store : {&stores.jobs, &stores.pods, &stores.services, &stores.config_maps})
          store->set_versions_comparable(comparable);
        base::log_info("API server", {{"version", base::string_at(reply.object, "gitVersion")},
                                      {"comparable_versions", comparable}});
        return;
      }
      base::log_warning("API server does not answer", {{"error", reply.message}});
      clock.sleep_for(kVersionTries);
    }
  }

  void work() {
    while (!synced() && !stopped) clock.sleep_for(std::chrono::milliseconds(20));
    while (const auto key = queue.take()) {
      if (stopped) break;
      run_one(*key);
      queue.done(*key);
    }
  }

  // The one place that catches: a bad object hurts itself only.
  RunReport run_guarded(const std::string& key) {
    try {
      return controller.run(key);
    } catch (const std::exception& error) {
      metrics.reconcile_panicked();
      return {RunResult::kError, std::nullopt, std::string("exception: ") + error.what(), false};
    } catch (...) {
      metrics.reconcile_panicked();
      return {RunResult::kError, std::nullopt, "unknown exception", false};
    }
  }

  void run_one(const std::string& key) {
    const base::MonotonicTime begin = clock.now();
    metrics.reconcile_started();
    const RunReport report = run_guarded(key);
    metrics.reconcile_finished(result_name(report.result), base::seconds(clock.now() - begin));
    if (!report.error.empty() && !stopped)
      base::log(report.quiet ? base::LogLevel::kInfo : base::LogLevel::kError, "reconcile",
                {{"trainingjob", key}, {"error", report.error}});
    switch (report.result) {
      case RunResult::kSuccess:
        return queue.forget_failures(key);
      case RunResult::kRequeueAfter:
        queue.forget_failures(key);
        return queue.add_after(key, *report.requeue_after);
      case RunResult::kRequeue:
      case RunResult::kError:
        return queue.retry(key);
    }
  }

  void read_gauges(OperatorMetrics& to) {
    const std::map<std::string, std::string> labels{{"controller", "trainingjob"}, {"name", "trainingjob"}};
    to.set("workqueue_depth", {{"controller", "trainingjob"}, {"name", "trainingjob"}, {"priority", "0"}},
           static_cast<double>(queue.depth()));
    to.set("workqueue_unfinished_work_seconds", labels, queue.unfinished_seconds());
    to.set("workqueue_longest_running_processor_seconds", labels, queue.longest_running_seconds());
    const std::pair<const char*, const ObjectStore*> caches[] = {{"trainingjobs", &stores.jobs},
                                                                 {"pods", &stores.pods},
                                                                 {"services", &stores.services},
                                                                 {"configmaps", &stores.config_maps}};
    for (const auto& [resource, store] : caches)
      to.set("evenkeel_operator_cache_objects", {{"resource", resource}}, static_cast<double>(store->size()));
  }

  base::Status start_pages() {
    metrics.set_gauge_reader([this](OperatorMetrics& to) { read_gauges(to); });
    page.add(std::shared_ptr<prometheus::Collectable>(&metrics, [](auto*) {}));
    page.add(std::make_shared<JobMetrics>(stores.jobs));
    page.add(base::process_metrics());
    const auto text = [](int status, const std::string& body) {
      return base::HttpResponse{status, "text/plain; charset=utf-8", body};
    };
    const std::map<std::string, base::HttpHandler> routes{
        {"/metrics",
         [this](const base::HttpRequest&) {
           return base::HttpResponse{200, std::string(base::kMetricsContentType), page.text()};
         }},
        // Alive = the loop ticks, not "the API server answers": a restart would not bring that back.
        {"/healthz",
         [this, text](const base::HttpRequest&) {
           return queue.longest_running_seconds() < kStuckSeconds ? text(200, "ok\n")
                                                                  : text(500, "a reconcile is stuck\n");
         }},
        {"/readyz",
         [this, text](const base::HttpRequest&) {
           return synced() ? text(200, "ok\n") : text(503, "caches are not synced\n");
         }},
    };
    base::HttpServerOptions server_options;
    server_options.address = options.metrics_host;
    server_options.port = options.metrics_port;
    EVENKEEL_ASSIGN(server, base::HttpServer::start(server_options, routes));
    base::log_info("pages", {{"address", options.metrics_host}, {"port", server->port()}});
    return {};
  }

  void start_work() {
    connect_stores();
    make_watches();
    events.start();
    reports.start(kReportThreads);
    threads.emplace_back([this] {
      learn_version();
      for (auto& watch : watches) run_watch(*watch);
    });
    for (int i = 0; i < options.workers; ++i) threads.emplace_back([this] { work(); });
  }

  void run_watch(ListWatch& watch) {
    watch_threads.emplace_back([&watch] { watch.run(); });
  }
  std::vector<std::thread> watch_threads;

  void stop() {
    if (stopped.exchange(true)) return;
    client.stop();
    queue.stop();
    for (auto& watch : watches) watch->cancel();
    for (std::thread& thread : threads) thread.join();
    for (auto& watch : watches) watch->cancel();  // one that was opened meanwhile
    for (std::thread& thread : watch_threads) thread.join();
    reports.stop();
    events.stop();
    server.reset();
  }
};

Operator::Operator(Transport& transport, TokenSource& tokens, base::Clock& clock, OperatorOptions options)
    : impl_(std::make_unique<Impl>(transport, tokens, clock, std::move(options))) {}

Operator::~Operator() {
  stop();
}

base::Status Operator::start() {
  EVENKEEL_TRY(impl_->start_pages());
  impl_->start_work();
  return {};
}

void Operator::stop() {
  impl_->stop();
}
std::uint16_t Operator::metrics_port() const {
  return impl_->server ? impl_->server->port() : 0;
}
bool Operator::ready() const {
  return impl_->synced();
}

}  // namespace evenkeel::oper
