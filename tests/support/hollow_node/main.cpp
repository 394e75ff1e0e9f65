// evenkeel-hollow-node: takes the pods of TrainingJobs that no kubelet runs. Until SIGTERM.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/files.h"
#include "base/signals.h"
#include "operator/kube/transport_cpprest.h"
#include "tests/support/hollow_node/node.h"

namespace evenkeel::support {
namespace {

struct Flags {
  std::string kubeconfig, script, name_space;
  int connections = 8;
};

int fail(const base::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

base::Result<HollowScript> script_of(const std::string& path) {
  if (path.empty()) return HollowScript{};
  constexpr std::size_t kMaxScriptBytes = 1u << 20;
  EVENKEEL_ASSIGN(const std::string text, base::real_files().read(path, kMaxScriptBytes));
  EVENKEEL_ASSIGN(const base::Json json, base::parse_json(text));
  return parse_script(json);
}

int run(const Flags& flags) {
  const base::StopSignal stop;
  auto access = oper::load_kubeconfig(base::real_files(), flags.kubeconfig);
  if (!access.ok()) return fail(access.error());
  auto script = script_of(flags.script);
  if (!script.ok()) return fail(script.error());
  oper::init_transport_threads(4);
  auto node = HollowNode::start(std::move(*access), {std::move(*script), flags.name_space, flags.connections});
  if (!node.ok()) return fail(node.error());
  while (!stop.wait(base::real_clock().now() + std::chrono::hours(1))) {
  }
  const HollowCounts counts = (*node)->counts();
  std::printf("{\"patches\": %llu, \"removed\": %llu, \"failed\": %llu}\n", static_cast<unsigned long long>(counts.patches),
              static_cast<unsigned long long>(counts.removed), static_cast<unsigned long long>(counts.failed));
  return 0;
}

}  // namespace
}  // namespace evenkeel::support

int main(int argc, char** argv) {
  evenkeel::support::Flags flags;
  CLI::App app{"A node without machines: pods get addresses, phases and ends by script"};
  app.add_option("--kubeconfig", flags.kubeconfig, "of the API server")->required();
  app.add_option("--script", flags.script, "JSON file with the rules; none: all pods run for ever");
  app.add_option("--namespace", flags.name_space, "whose pods; none: all");
  app.add_option("--connections", flags.connections, "requests at once");
  CLI11_PARSE(app, argc, argv);
  return evenkeel::support::run(flags);
}
