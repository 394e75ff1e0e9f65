// evenkeel-trainer checkpoint ls | verify | export: checkpoints for people and for other programs. main()
// adds the command and runs what was chosen; the functions return the exit code. One thread.
#pragma once

#include <CLI/CLI.hpp>

#include <ostream>
#include <string>

#include "base/files.h"

namespace evenkeel::trainer {

enum class ExportContent { kWeights, kWeightsAndOptimizer };

struct CheckpointCommand {
  CLI::App* command = nullptr;  // "checkpoint" itself: parsed() when it was chosen
  CLI::App* ls = nullptr;
  CLI::App* verify = nullptr;
  CLI::App* export_to = nullptr;
  std::string folder;
  std::string output;
  bool with_optimizer = false;
  bool weights_only = false;  // said aloud; it is what happens anyway
};

// Options are written into `chosen`, which must outlive the parsing.
void add_checkpoint_command(CLI::App& app, CheckpointCommand& chosen);
int run_checkpoint_command(const CheckpointCommand& chosen, base::Files& files, std::ostream& out,
                           std::ostream& err);

// A table of all checkpoints under `root`, newest first, each with why it is none. 0 even where some are
// damaged: verify is for judging. 65: no such folder.
int run_checkpoint_ls(base::Files& files, const std::string& root, std::ostream& out, std::ostream& err);
// Every file of one checkpoint with what is wrong with it. 0, or 65 when something does not verify.
int run_checkpoint_verify(base::Files& files, const std::string& folder, std::ostream& out,
                          std::ostream& err);
// One plain safetensors file with the names as they are; readers see the old content of `output` or the new.
int run_checkpoint_export(base::Files& files, const std::string& folder, const std::string& output,
                          ExportContent content, std::ostream& out, std::ostream& err);

}  // namespace evenkeel::trainer
