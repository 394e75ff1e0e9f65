// evenkeel-trainer: one program, one subcommand for each part that a pod of a job plays. The only place where
// an error becomes an exit code.
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <iostream>
#include <string>

#include "base/files.h"
#include "base/log.h"
#include "base/signals.h"
#include "contract/commands.h"
#include "contract/exit_codes.h"
#include "contract/job/validate.h"
#include "trainer/app/checkpoint_command.h"
#include "trainer/app/explain_command.h"
#include "trainer/config/manifest.h"
#include "trainer/config/settings.h"
#include "trainer/coordinator/coordinator_server.h"
#include "trainer/launch/launcher.h"
#include "trainer/local/local_manifest.h"
#include "trainer/local/local_run.h"
#include "trainer/loop/cgroup.h"
#include "trainer/loop/job_plan.h"
#include "trainer/loop/worker.h"

namespace {

using namespace evenkeel;

int fail(const base::Error& error) {
  const auto code = static_cast<int>(contract::exit_code_of(error.code));
  base::log_error(error.message, {{"code", base::error_code_name(error.code)}, {"exitCode", code}});
  return code;
}

// Settings of a pod, said once in the log: what a run really used must be in its record.
base::Result<trainer::Settings> pod_settings(contract::Role role) {
  EVENKEEL_ASSIGN(trainer::Settings settings,
                  trainer::read_settings(trainer::process_environment(), base::real_files()));
  if (settings.role != role) {
    return base::Error{base::ErrorCode::kInvalidInput,
                       std::string("this pod's role is ") + contract::role_name(settings.role) +
                           ", the command is for " + contract::role_name(role)};
  }
  base::add_common_log_field("job", settings.config.job_name);
  if (role == contract::Role::kWorker) base::add_common_log_field("rank", settings.rank);
  base::log_info("effective configuration", {{"version", EVENKEEL_VERSION},
                                             {"role", contract::role_name(role)},
                                             {"attempt", settings.config.attempt},
                                             {"ranks", settings.config.ranks},
                                             {"bindAddress", settings.bind_address},
                                             {"pod", settings.pod_name},
                                             {"node", settings.node_name},
                                             {"spec", settings.config.spec_json}});
  return settings;
}

int worker() {
  const base::StopSignal stop;
  const base::Result<trainer::Settings> settings = pod_settings(contract::Role::kWorker);
  if (!settings.ok()) return fail(settings.error());
  trainer::WorkerDependencies dependencies;
  dependencies.files = &base::real_files();
  dependencies.stop = &stop.waker();
  dependencies.stop_requested = [&stop] { return stop.requested(); };
  return static_cast<int>(trainer::run_worker(*settings, dependencies));
}

// This program's own file: what its children run.
std::string own_program() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "/proc/self/exe";
}

int launch() {
  const base::StopSignal stop;
  const base::Result<trainer::Settings> settings =
      trainer::read_settings(trainer::process_environment(), base::real_files());
  if (!settings.ok()) return fail(settings.error());
  base::add_common_log_field("job", settings->config.job_name);
  base::add_common_log_field("pod", settings->pod_name);
  return trainer::run_launcher(*settings, {own_program(), trainer::process_environment(), &stop});
}

// Threads that wait in a loop for the next parallel region take the core from the rank beside them. The library
// reads the variable when it is loaded, so it has to be there before: the program starts itself once more.
void wait_without_spinning(char** argv) {
  if (::getenv("OMP_WAIT_POLICY") != nullptr || ::getenv("GOMP_SPINCOUNT") != nullptr) return;
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  ::execv("/proc/self/exe", argv);  // where that is not possible it goes on as it is
}

int coordinator() {
  const base::StopSignal stop;
  const base::Result<trainer::Settings> settings = pod_settings(contract::Role::kCoordinator);
  if (!settings.ok()) return fail(settings.error());
  trainer::CoordinatorOptions options;
  options.config = settings->config;
  // A replacement of the same attempt: its fence is above that of the one before.
  options.config.coordinator_incarnation = static_cast<std::uint32_t>(settings->incarnation);
  options.key = settings->key;
  options.bind_address = settings->bind_address;
  options.control_port = static_cast<std::uint16_t>(settings->config.coordinator_port);
  options.metrics_port = static_cast<std::uint16_t>(settings->metrics_port);
  options.termination_log = settings->termination_log;
  options.wanted_file = settings->wanted_file;
  options.stop = &stop.waker();
  return trainer::run_coordinator(options);
}

struct PlanCommand {
  trainer::LocalOptions options;
  bool passes = false;
};

base::Result<std::string> plan_text(const PlanCommand& command) {
  EVENKEEL_ASSIGN(base::Json manifest, trainer::load_manifest(command.options.manifest, base::real_files()));
  EVENKEEL_ASSIGN(const contract::TrainingJob job, trainer::local_job(std::move(manifest), command.options));
  const trainer::MemoryLimit memory = trainer::read_memory_limit(base::real_files());
  const auto ranks = static_cast<std::uint64_t>(job.spec.ranks());
  return trainer::describe_job(
      base::real_files(), job.spec,
      {memory.bytes / ranks, memory.source + " for " + std::to_string(ranks) + " ranks", command.passes});
}

int plan(const PlanCommand& command) {
  const base::Result<std::string> text = plan_text(command);
  if (!text.ok()) {
    // Read by a person at a terminal.
    std::cerr << "evenkeel-trainer plan: " << text.error().message << "\n";
    return static_cast<int>(contract::exit_code_of(text.error().code));
  }
  std::cout << *text;
  return 0;
}

int local(const trainer::LocalOptions& options) {
  const base::StopSignal stop;
  trainer::LocalEnvironment environment;
  environment.program = own_program();
  environment.stop = &stop;
  environment.out = &std::cout;
  environment.terminal = ::isatty(STDOUT_FILENO) == 1;
  return trainer::run_local(options, environment);
}

// What overrides the manifest, for `local` and `plan` alike.
void add_job_options(CLI::App* command, trainer::LocalOptions& options) {
  command->add_option("-f,--file", options.manifest, "Manifest, YAML or JSON")->required();
  command->add_option("--data", options.data, "Folder of the data set, instead of dataset.path");
  command->add_option("--workers", options.workers, "Workers, instead of workers.replicas")
      ->check(CLI::Range(1, 4096));
  CLI::Option* epochs = command->add_option("--epochs", options.epochs, "Instead of training.epochs or steps")
                            ->check(CLI::PositiveNumber);
  command->add_option("--steps", options.steps, "Instead of training.epochs or steps")
      ->check(CLI::PositiveNumber)
      ->excludes(epochs);
  command->add_option("--global-batch", options.global_batch, "Instead of training.batchSize")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", options.seed, "Instead of training.seed");
}

CLI::App* add_local(CLI::App& app, trainer::LocalOptions& options) {
  CLI::App* command =
      app.add_subcommand("local", "Run a job on this machine: coordinator and workers as processes");
  add_job_options(command, options);
  command->add_option("--report", options.report, "Write what happened to this file, as JSON");
  command->add_option(
      "--trace", options.trace,
      "Write a trace of operators, collectives and data threads of all ranks to this file, for "
      "Perfetto or chrome://tracing");
  command
      ->add_option("--micro-batch", options.micro_batch,
                   "Samples that a rank computes at once (default: its share, or what fits into memory)")
      ->check(CLI::Range(1, 1 << 24));
  command->add_option("--inject", options.inject,
                      "Make ranks slow or wrong on purpose, to see what the diagnosis and the checks say: compute=SECONDS[@RANK|@rotate] and "
                      "input=SECONDS for each sample, step=SECONDS once a step, network=SECONDS for each reduction, "
                      "from=STEP for what comes after it; repeat-record[@RANK] reads one record twice, "
                      "drop-gradient[@RANK] loses a rank's gradients; by commas");
  command->add_option("--checkpoint-dir", options.checkpoint_dir,
                      "Folder for checkpoints, instead of checkpoint.path");
  command
      ->add_option("--metrics-port-base", options.metrics_port_base,
                   "Coordinator's metrics port; worker w is at base + 1 + w (default: free ports)")
      ->check(CLI::Range(1, 61000));
  return command;
}

CLI::App* add_plan(CLI::App& app, PlanCommand& plan_command) {
  CLI::App* command = app.add_subcommand("plan", "Print what a job will compute, before any run");
  add_job_options(command, plan_command.options);
  command->add_flag("--graph", plan_command.passes, "Also print the graph after each pass of the compiler");
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Evenkeel's trainer"};
  app.require_subcommand(1);
  app.set_version_flag("--version", EVENKEEL_VERSION);
  CLI::App* worker_command =
      app.add_subcommand("worker", "One rank of a job (settings: environment and configuration file)");
  CLI::App* coordinator_command =
      app.add_subcommand("coordinator", "The coordinator of a job (settings: as for worker)");
  CLI::App* launch_command = app.add_subcommand(
      contract::kLaunchCommand, "The ranks of one pod, each a worker (settings: as for worker, rank: the first)");
  PlanCommand plan_options;
  CLI::App* plan_command = add_plan(app, plan_options);
  trainer::CheckpointCommand checkpoint_command;
  trainer::add_checkpoint_command(app, checkpoint_command);
  trainer::ExplainCommand explain_command;
  trainer::add_explain_command(app, explain_command);
  CLI::App* version_command = app.add_subcommand("version", "Print the version");
  trainer::LocalOptions local_options;
  CLI::App* local_command = add_local(app, local_options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help, --version
    app.exit(error);
    return asked ? 0 : static_cast<int>(contract::ExitCode::kBadConfiguration);
  }
  if (version_command->parsed()) {
    std::cout << "evenkeel-trainer " EVENKEEL_VERSION "\n";
    return 0;
  }
  base::init_log(base::LogLevel::kInfo, {});
  if (checkpoint_command.command->parsed()) {
    return trainer::run_checkpoint_command(checkpoint_command, base::real_files(), std::cout, std::cerr);
  }
  if (explain_command.command->parsed()) {
    return trainer::run_explain(explain_command, base::real_files(), trainer::fetch_by_http, std::cout, std::cerr);
  }
  if (worker_command->parsed()) {
    wait_without_spinning(argv);
    return worker();
  }
  if (coordinator_command->parsed()) return coordinator();
  if (launch_command->parsed()) return launch();
  if (plan_command->parsed()) return plan(plan_options);
  if (local_command->parsed()) return local(local_options);
  return static_cast<int>(contract::ExitCode::kInternal);
}
