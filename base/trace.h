// A trace of what every thread of a process did, in the event form that Perfetto and chrome://tracing read.
// Off unless open_trace() was called; then spans cost two clock readings and one lock. Times are
// CLOCK_MONOTONIC, so the processes of one machine are on one clock. Any thread may record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"

namespace evenkeel::base {

// From now on spans are kept, at most `max_events` of them; later ones are counted and left out. `process`:
// name and number of this process in the trace ("rank 2", 2). Called once, before the threads that record.
void open_trace(std::string process, int process_id, std::size_t max_events = std::size_t{1} << 20);
bool trace_is_open();

// One span of the calling thread. category: "operator", "collective", "data", "phase". Nothing while closed.
void trace_span(const char* category, std::string_view name, MonotonicTime begin, MonotonicTime end);
// A name for the calling thread; the first one stays.
void name_trace_thread(const char* name);

// What was recorded, as lines of JSON, one event each; afterwards tracing is closed.
Status write_trace(Files& files, const std::string& path);

// Parts of several processes as one document: {"traceEvents": [...]}. A part that is missing (its process was
// killed) is left out.
Status merge_traces(Files& files, const std::vector<std::string>& parts, const std::string& path);

// The span of a scope.
class TraceSpan {
 public:
  TraceSpan(const char* category, std::string_view name)
      : open_(trace_is_open()), category_(category), name_(open_ ? std::string(name) : std::string()) {
    if (open_) begin_ = real_clock().now();
  }
  ~TraceSpan() {
    if (open_) trace_span(category_, name_, begin_, real_clock().now());
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  bool open_;
  const char* category_;
  std::string name_;
  MonotonicTime begin_{};
};

}  // namespace evenkeel::base
