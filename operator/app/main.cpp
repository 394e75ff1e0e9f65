// evenkeel-operator: run | crd | metrics | version | --selftest. The only place that turns an error into an
// exit code.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/files.h"
#include "base/http.h"
#include "base/log.h"
#include "contract/exit_codes.h"
#include "contract/labels.h"
#include "contract/metrics.h"
#include "operator/crd/crd.h"
#include "operator/kube/transport_cpprest.h"
#include "operator/runtime/operator.h"
#include "operator/runtime/stop_clock.h"

namespace evenkeel::oper {
namespace {

constexpr int kTransportThreads = 4;
constexpr int kBadUse = static_cast<int>(contract::ExitCode::kBadConfiguration);
constexpr int kTryAgain = static_cast<int>(contract::ExitCode::kTryAgain);
constexpr int kIoFailed = static_cast<int>(contract::ExitCode::kIo);

struct Flags {
  std::string kubeconfig;
  std::vector<std::string> namespaces;
  std::string metrics_address = "0.0.0.0:8080";
  std::string trainer_image;
  std::string pod_defaults = "{}";
  double qps = 300;
  double burst = 600;
  int workers = 4;
  std::string log_level = "info";
};

base::Result<AccessConfig> access_of(const Flags& flags) {
  return flags.kubeconfig.empty() ? in_cluster(base::real_files())
                                  : load_kubeconfig(base::real_files(), flags.kubeconfig);
}

base::Result<OperatorOptions> options_of(const Flags& flags) {
  const auto invalid = [](std::string message) {
    return base::Error{base::ErrorCode::kInvalidInput, std::move(message)};
  };
  OperatorOptions options;
  options.namespaces = flags.namespaces;
  const std::size_t colon = flags.metrics_address.rfind(':');
  if (colon == std::string::npos)
    return invalid("--metrics-address '" + flags.metrics_address + "' must be ADDRESS:PORT");
  char* end = nullptr;
  const long port = std::strtol(flags.metrics_address.c_str() + colon + 1, &end, 10);
  if (port < 0 || port > 65535 || *end != 0 || colon + 1 == flags.metrics_address.size())
    return invalid("--metrics-address '" + flags.metrics_address + "' has no port from 0 to 65535");
  options.metrics_host = colon == 0 ? "0.0.0.0" : flags.metrics_address.substr(0, colon);
  options.metrics_port = static_cast<std::uint16_t>(port);
  options.trainer_image = flags.trainer_image;
  auto defaults = base::parse_json(flags.pod_defaults);
  if (!defaults.ok()) return base::with_context("--pod-defaults", std::move(defaults).error());
  if (!defaults->is_object())
    return invalid("--pod-defaults '" + flags.pod_defaults + "' must be a JSON object");
  options.pod_defaults = std::move(*defaults);
  options.client.qps = flags.qps;
  options.client.burst = flags.burst;
  options.workers = flags.workers;
  char host[256] = "evenkeel-operator";
  gethostname(host, sizeof host - 1);
  options.instance = host;
  return options;
}

int fail(const base::Error& error, int code) {
  std::fprintf(stderr, "evenkeel-operator: %s\n", error.message.c_str());
  return code;
}

int run(const Flags& flags) {
  auto access = access_of(flags);
  if (!access.ok()) return fail(access.error(), kBadUse);
  auto options = options_of(flags);
  if (!options.ok()) return fail(options.error(), kBadUse);
  options->api_host = access->server.host + ":" + std::to_string(access->server.port);

  // Blocked before any thread starts, so that all inherit it and this thread alone takes the signal.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  init_transport_threads(kTransportThreads);
  StopClock clock;
  Credentials credentials(std::move(*access), base::real_files(), clock);
  CredentialTokens tokens(credentials);
  const auto transport = make_cpprest_transport(credentials);
  Operator op(*transport, tokens, clock, std::move(*options));
  if (const base::Status started = op.start(); !started.ok()) return fail(started.error(), kBadUse);
  int signal = 0;
  sigwait(&signals, &signal);
  base::log_info("stopping", {{"signal", signal}});
  // Whatever is in flight is found again by the next process; a hung call must not hold this one.
  alarm(10);
  clock.stop();
  op.stop();
  base::log_info("stopped");
  std::fflush(nullptr);
  _exit(0);  // the transport library's threads do not end by themselves
}

// What `helm test` asks: does the API server answer, is the CRD there, may we do what we need.
int selftest(const Flags& flags) {
  auto access = access_of(flags);
  if (!access.ok()) return fail(access.error(), kBadUse);
  init_transport_threads(kTransportThreads);
  Credentials credentials(std::move(*access), base::real_files(), base::real_clock());
  CredentialTokens tokens(credentials);
  const auto transport = make_cpprest_transport(credentials);
  ApiClient client(*transport, tokens, base::real_clock());
  int failures = 0;
  const auto check = [&](const std::string& what, const ApiReply& reply) {
    std::printf("%-40s %s\n", what.c_str(), reply.ok() ? "ok" : reply.message.c_str());
    failures += reply.ok() ? 0 : 1;
  };
  check("API server answers", client.version());
  const std::vector<std::string> scopes =
      flags.namespaces.empty() ? std::vector<std::string>{""} : flags.namespaces;
  for (const std::string& scope : scopes)
    for (const Resource* resource : {&trainingjobs(), &pods(), &services(), &config_maps()})
      check("list " + resource->plural + (scope.empty() ? "" : " in " + scope),
            client.list(*resource,
                        {.name_space = scope, .label_selector = "", .limit = 1, .continue_token = ""}));
  const Resource reviews{"/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews",
                         "SelfSubjectAccessReview"};
  for (const std::string& scope : scopes) {
    for (const auto& [verb, group, plural] : {std::tuple{"create", "", "pods"},
                                              {"delete", "", "pods"},
                                              {"create", "", "secrets"},
                                              {"create", "", "services"},
                                              {"create", "", "configmaps"}}) {
      ApiReply reply = client.create(
          reviews, "",
          Json{{"apiVersion", "authorization.k8s.io/v1"},
               {"kind", reviews.kind},
               {"spec",
                {{"resourceAttributes",
                  {{"verb", verb}, {"group", group}, {"resource", plural}, {"namespace", scope}}}}}});
      if (reply.ok() && !base::bool_at(base::child(reply.object, "status"), "allowed")) {
        reply.code = ApiCode::kRejected;
        reply.message = "not allowed: give the service account this right (chart value rbac.create)";
      }
      check(std::string("may ") + verb + " " + plural + (scope.empty() ? "" : " in " + scope), reply);
    }
  }
  std::fflush(nullptr);
  _exit(failures == 0 ? 0 : kTryAgain);
}

int main_of(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  mallopt(M_ARENA_MAX, 2);  // an arena a thread would double the memory held
  Flags flags;
  CLI::App app{"Evenkeel's Kubernetes operator: runs TrainingJob objects"};
  bool want_selftest = false;
  app.add_flag("--selftest", want_selftest, "Check API server, CRD and rights, then exit");
  const auto add_access = [&](CLI::App* to) {
    to->add_option("--kubeconfig", flags.kubeconfig,
                   "Kubeconfig file; default: the service account of this pod");
    to->add_option("--namespace", flags.namespaces,
                   "Watch this namespace only; may be repeated; default: all");
  };
  add_access(&app);
  CLI::App* run_command = app.add_subcommand("run", "Run the operator");
  add_access(run_command);
  run_command
      ->add_option("--metrics-address", flags.metrics_address, "ADDRESS:PORT of /metrics, /healthz, /readyz")
      ->capture_default_str();
  run_command->add_option("--trainer-image", flags.trainer_image, "Image of jobs that name none");
  run_command
      ->add_option("--pod-defaults", flags.pod_defaults,
                   "JSON that every pod starts from: imagePullSecrets, tolerations, ...")
      ->capture_default_str();
  run_command->add_option("--qps", flags.qps, "Requests a second to the API server")
      ->check(CLI::Range(0.1, 100000.0))
      ->capture_default_str();
  run_command->add_option("--burst", flags.burst, "Requests at once")
      ->check(CLI::Range(1.0, 100000.0))
      ->capture_default_str();
  run_command->add_option("--workers", flags.workers, "Jobs worked on at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  run_command->add_option("--log-level", flags.log_level, "debug | info | warning | error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  CLI::App* crd_command = app.add_subcommand("crd", "Print the CustomResourceDefinition");
  CLI::App* metrics_command = app.add_subcommand("metrics", "Print the metric catalogue as Markdown");
  CLI::App* version_command = app.add_subcommand("version", "Print the version");
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUse;
  }
  const std::map<std::string, base::LogLevel> levels{{"debug", base::LogLevel::kDebug},
                                                     {"info", base::LogLevel::kInfo},
                                                     {"warning", base::LogLevel::kWarning},
                                                     {"error", base::LogLevel::kError}};
  base::init_log(levels.at(flags.log_level), {});
  if (crd_command->parsed()) return std::fputs(crd_yaml().c_str(), stdout) < 0 ? kIoFailed : 0;
  if (metrics_command->parsed())
    return std::fputs(contract::metrics_markdown().c_str(), stdout) < 0 ? kIoFailed : 0;
  if (version_command->parsed())
    return std::printf("evenkeel-operator %s\n", EVENKEEL_VERSION) < 0 ? kIoFailed : 0;
  if (want_selftest) return selftest(flags);
  if (run_command->parsed()) return run(flags);
  std::fputs(app.help().c_str(), stderr);
  return kBadUse;
}

}  // namespace
}  // namespace evenkeel::oper

int main(int argc, char** argv) {
  return evenkeel::oper::main_of(argc, argv);
}
