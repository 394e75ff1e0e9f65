// What `evenkeel-trainer local` was asked for. Filled by trainer/app from the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace evenkeel::trainer {

struct LocalOptions {
  std::string manifest;                     // file
  std::string report;                       // file; empty: none
  std::string trace;                        // file; empty: none
  std::string inject;                       // slowness on purpose: trainer/loop/injection.h
  std::optional<std::int64_t> micro_batch;  // samples a rank computes at once
  // Over the manifest.
  std::string data;            // dataset.path
  std::string checkpoint_dir;  // checkpoint.path
  std::optional<int> workers;
  std::optional<std::int64_t> epochs, steps, global_batch;
  std::optional<std::uint64_t> seed;
  std::optional<int> metrics_port_base;  // coordinator; workers follow. Absent: free ports
};

}  // namespace evenkeel::trainer
