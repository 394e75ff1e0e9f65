#include "trainer/launch/pod_server.h"

#include <charconv>
#include <future>
#include <optional>

#include "base/files.h"
#include "base/metrics.h"
#include "trainer/launch/exposition.h"

namespace evenkeel::trainer {
namespace {

constexpr char kLoopback[] = "127.0.0.1";
constexpr char kPlain[] = "text/plain; charset=utf-8";
constexpr std::chrono::milliseconds kPatience{2000};
constexpr std::size_t kMaxPageBytes = 4u << 20;

std::optional<std::uint16_t> port_of(const RankPlace& place) {
  const auto text = base::real_files().read(metrics_file(place), 16);
  if (!text.ok()) return std::nullopt;  // not started yet
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), port);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return port;
}

std::optional<base::HttpResponse> ask(const RankPlace& place, const std::string& path) {
  const auto port = port_of(place);
  if (!port) return std::nullopt;
  auto answer = base::http_get(kLoopback, *port, path, kPatience, kMaxPageBytes);
  if (!answer.ok()) return std::nullopt;
  return std::move(*answer);
}

// All at once: one that stands still must not keep the others from being heard.
std::vector<std::optional<base::HttpResponse>> ask_all(const std::vector<RankPlace>& ranks, const std::string& path) {
  std::vector<std::future<std::optional<base::HttpResponse>>> asked;
  for (const RankPlace& place : ranks)
    asked.push_back(std::async(std::launch::async, [&place, &path] { return ask(place, path); }));
  std::vector<std::optional<base::HttpResponse>> answers;
  for (auto& one : asked) answers.push_back(one.get());
  return answers;
}

base::HttpResponse metrics(const std::vector<RankPlace>& ranks) {
  auto answers = ask_all(ranks, "/metrics");
  std::vector<RankPage> pages;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (answers[i] && answers[i]->status == 200) pages.push_back({ranks[i].rank(), std::move(answers[i]->body)});
  }
  return {200, std::string(base::kMetricsContentType), merge_pages(pages)};
}

base::HttpResponse readiness(const std::vector<RankPlace>& ranks) {
  const auto answers = ask_all(ranks, "/readyz");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!answers[i] || answers[i]->status != 200)
      return {503, kPlain, "rank " + std::to_string(ranks[i].rank()) + " is not ready\n"};
  }
  return {200, kPlain, "ok\n"};
}

}  // namespace

base::Result<std::unique_ptr<base::HttpServer>> start_pod_server(const Settings& settings, std::vector<RankPlace> ranks) {
  base::HttpServerOptions options;
  options.address = settings.bind_address;
  options.port = static_cast<std::uint16_t>(settings.metrics_port);
  std::map<std::string, base::HttpHandler> routes;
  routes["/metrics"] = [ranks](const base::HttpRequest&) { return metrics(ranks); };
  routes["/readyz"] = [ranks](const base::HttpRequest&) { return readiness(ranks); };
  routes["/healthz"] = [](const base::HttpRequest&) { return base::HttpResponse{200, kPlain, "ok\n"}; };
  return base::HttpServer::start(options, std::move(routes));
}

}  // namespace evenkeel::trainer
