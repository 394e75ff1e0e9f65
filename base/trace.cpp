#include "base/trace.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>

#include "base/json.h"

namespace evenkeel::base {
namespace {

struct Event {
  const char* category;
  std::string name;
  int thread;
  std::int64_t begin_ns, duration_ns;
};

struct Recorder {
  std::atomic<bool> open{false};
  std::mutex mutex;  // guards all below
  std::string process;
  int process_id = 0;
  std::size_t max_events = 0;
  std::vector<Event> events;
  std::uint64_t left_out = 0;
  std::map<int, std::string> thread_names;
};

Recorder& recorder() {
  static Recorder instance;
  return instance;
}

// Small numbers in the order of first use: they sort the rows of the picture.
int thread_number() {
  static std::atomic<int> next{0};
  thread_local const int number = next++;
  return number;
}

Json metadata(const Recorder& r, const char* what, int thread, const std::string& name) {
  return Json{
      {"name", what}, {"ph", "M"}, {"pid", r.process_id}, {"tid", thread}, {"args", Json{{"name", name}}}};
}

// The format counts in microseconds; fractions are allowed.
Json to_json(const Recorder& r, const Event& event) {
  return Json{{"name", event.name},
              {"cat", event.category},
              {"ph", "X"},
              {"pid", r.process_id},
              {"tid", event.thread},
              {"ts", static_cast<double>(event.begin_ns) / 1e3},
              {"dur", static_cast<double>(event.duration_ns) / 1e3}};
}

constexpr std::size_t kMaxPartBytes = std::size_t{1} << 30;

}  // namespace

void open_trace(std::string process, int process_id, std::size_t max_events) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  r.process = std::move(process);
  r.process_id = process_id;
  r.max_events = max_events;
  r.events.clear();
  r.left_out = 0;
  r.open.store(true);
}

bool trace_is_open() {
  return recorder().open.load(std::memory_order_relaxed);
}

void trace_span(const char* category, std::string_view name, MonotonicTime begin, MonotonicTime end) {
  if (!trace_is_open()) return;
  Recorder& r = recorder();
  const int thread = thread_number();
  const std::lock_guard lock(r.mutex);
  if (r.events.size() >= r.max_events) {
    ++r.left_out;
    return;
  }
  r.events.push_back(
      {category, std::string(name), thread, begin.time_since_epoch().count(), (end - begin).count()});
}

void name_trace_thread(const char* name) {
  if (!trace_is_open()) return;
  const std::lock_guard lock(recorder().mutex);
  recorder().thread_names.emplace(thread_number(), name);
}

Status write_trace(Files& files, const std::string& path) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  r.open.store(false);
  std::string text = dump_json(metadata(r, "process_name", 0, r.process)) + "\n";
  for (const auto& [thread, name] : r.thread_names)
    text += dump_json(metadata(r, "thread_name", thread, name)) + "\n";
  if (r.left_out > 0) {
    text +=
        dump_json(metadata(r, "process_labels", 0, std::to_string(r.left_out) + " later events left out")) +
        "\n";
  }
  for (const Event& event : r.events) text += dump_json(to_json(r, event)) + "\n";
  const std::string_view pieces[] = {text};
  return files.write_synced(path, pieces);
}

Status merge_traces(Files& files, const std::vector<std::string>& parts, const std::string& path) {
  std::string text = "{\"traceEvents\": [\n";
  bool first = true;
  for (const std::string& part : parts) {
    if (!files.exists(part)) continue;
    EVENKEEL_ASSIGN(const std::string lines, files.read(part, kMaxPartBytes));
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', at), lines.size());
      text += (first ? "" : ",\n") + lines.substr(at, end - at);
      first = false;
      at = end + 1;
    }
  }
  text += "\n], \"displayTimeUnit\": \"ms\"}\n";
  return write_atomic(files, path, text);
}

}  // namespace evenkeel::base
