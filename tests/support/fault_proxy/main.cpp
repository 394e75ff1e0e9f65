// evenkeel-fault-proxy: a proxy in front of an API server that breaks what a plan says. The plan file is read again
// when it changes; SIGTERM ends it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "base/files.h"
#include "base/signals.h"
#include "tests/support/fault_proxy/proxy.h"

namespace evenkeel::support {
namespace {

struct Flags {
  std::string kubeconfig, plan, log, write_kubeconfig;
  std::uint16_t port = 0;
};

int fail(const base::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

constexpr std::size_t kMaxPlanBytes = 1u << 20;

// No path: no plan, "".
base::Result<std::string> text_of(const std::string& path) {
  if (path.empty()) return std::string();
  return base::real_files().read(path, kMaxPlanBytes);
}

base::Result<FaultPlan> plan_of(const std::string& text) {
  if (text.empty()) return FaultPlan{};
  EVENKEEL_ASSIGN(const base::Json json, base::parse_json(text));
  return parse_plan(json);
}

// A plan that is half written, wrong or away for a moment is said or passed over, and the one before stays.
void follow(FaultProxy& proxy, const std::string& path, std::string text, const base::StopSignal& stop) {
  while (!stop.wait(base::real_clock().now() + std::chrono::milliseconds(100))) {
    if (path.empty()) continue;
    auto now = text_of(path);
    if (!now.ok() || *now == text) continue;
    text = std::move(*now);
    auto plan = plan_of(text);
    if (plan.ok())
      proxy.set_plan(std::move(*plan));
    else
      fail(plan.error());
  }
}

int run(const Flags& flags) {
  const base::StopSignal stop;
  auto access = oper::load_kubeconfig(base::real_files(), flags.kubeconfig);
  if (!access.ok()) return fail(access.error());
  const auto text = text_of(flags.plan);
  if (!text.ok()) return fail(text.error());
  auto plan = plan_of(*text);
  if (!plan.ok()) return fail(plan.error());
  auto proxy = FaultProxy::start(std::move(*access), {flags.port, std::move(*plan), flags.log});
  if (!proxy.ok()) return fail(proxy.error());
  if (!flags.write_kubeconfig.empty()) std::ofstream(flags.write_kubeconfig) << proxy_kubeconfig((*proxy)->port());
  std::printf("{\"port\": %d}\n", (*proxy)->port());
  std::fflush(stdout);
  follow(**proxy, flags.plan, *text, stop);
  return 0;
}

}  // namespace
}  // namespace evenkeel::support

int main(int argc, char** argv) {
  evenkeel::support::Flags flags;
  CLI::App app{"A proxy in front of an API server that breaks what its plan says"};
  app.add_option("--kubeconfig", flags.kubeconfig, "of the real API server")->required();
  app.add_option("--port", flags.port, "to listen on at 127.0.0.1; 0: any free one, printed");
  app.add_option("--plan", flags.plan, "JSON file with the rules; read again when it changes");
  app.add_option("--log", flags.log, "file for one JSON line a request");
  app.add_option("--write-kubeconfig", flags.write_kubeconfig, "file for a kubeconfig that leads here");
  CLI11_PARSE(app, argc, argv);
  return evenkeel::support::run(flags);
}
