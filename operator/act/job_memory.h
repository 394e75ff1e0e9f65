// What this operator remembers of a job between two runs. All of it may be lost at any instant without harm:
// what matters lies in the job's status and in its children. One run of a job at a time touches it; no lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"

namespace evenkeel::oper {

struct JobMemory {
  std::string uid;
  std::map<std::string, std::string> create_errors;     // "<kind>/<name>" -> the API server's words
  std::map<std::string, std::string> name_conflicts;    // "<kind>/<name>" -> who holds it
  std::optional<std::int64_t> secret_attempt;           // POSTed in this attempt
  std::optional<std::int64_t> key_lost_attempt;         // whose pods hold a key that is gone
  std::optional<base::MonotonicTime> progress_written;  // the last status write that carried progress
  std::string last_phase;                               // as stored, at the last run; for counters
};

// The job that is acted for, as cached.
struct JobRef {
  std::string name_space;
  std::string name;
  std::string uid;
  std::string resource_version;
  base::Json status;  // as stored; null if none
};

}  // namespace evenkeel::oper
