// evenkeel-trainer explain REPORT|URL [--html FILE]: why N ranks are not N times faster, for people. main()
// adds the command and runs it; the function returns the exit code. One thread.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <ostream>
#include <string>

#include "base/files.h"
#include "base/result.h"

namespace evenkeel::trainer {

struct ExplainCommand {
  CLI::App* command = nullptr;  // parsed() when it was chosen
  std::string source;           // a file, or http://host:port
  std::string html;             // a file; empty: text alone
};

// host, port, path -> the answer's body.
using Fetch = std::function<base::Result<std::string>(const std::string& host, std::uint16_t port,
                                                      const std::string& path)>;
base::Result<std::string> fetch_by_http(const std::string& host, std::uint16_t port, const std::string& path);

// Options are written into `chosen`, which must outlive the parsing.
void add_explain_command(CLI::App& app, ExplainCommand& chosen);
// 0; 64: the source is no report; 74: it cannot be read, or the page cannot be written.
int run_explain(const ExplainCommand& chosen, base::Files& files, const Fetch& fetch, std::ostream& out,
                std::ostream& err);

}  // namespace evenkeel::trainer
