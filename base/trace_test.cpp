#include "base/trace.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/files_fake.h"
#include "base/json.h"

namespace evenkeel::base {
namespace {

Json merged(FakeFiles& files, const std::vector<std::string>& parts) {
  EXPECT_TRUE(merge_traces(files, parts, "/trace.json").ok());
  return parse_json(files.read("/trace.json", 1u << 20).value()).value();
}

TEST(Trace, holds_spans_of_all_threads_and_processes_on_one_clock) {
  FakeFiles files;
  open_trace("rank 0", 0);
  name_trace_thread("loop");
  {
    const TraceSpan outer("operator", "conv \"1\"");
    std::thread([] { const TraceSpan inner("data", "read"); }).join();
  }
  ASSERT_TRUE(write_trace(files, "/0").ok());
  EXPECT_FALSE(trace_is_open());
  open_trace("rank 1", 1);
  trace_span("phase", "forward", MonotonicTime(std::chrono::microseconds(5)),
             MonotonicTime(std::chrono::microseconds(7)));
  ASSERT_TRUE(write_trace(files, "/1").ok());

  const Json events = merged(files, {"/0", "/lost", "/1"})["traceEvents"];
  std::vector<std::string> names;
  for (const Json& event : events) {
    if (event["ph"] == "X") names.push_back(event["name"]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"read", "conv \"1\"", "forward"}));
  EXPECT_EQ(events.back()["pid"], 1);
  EXPECT_EQ(events.back()["ts"], 5.0);
  EXPECT_EQ(events.back()["dur"], 2.0);
}

TEST(Trace, keeps_no_more_events_than_it_may_and_says_how_many_are_missing) {
  FakeFiles files;
  open_trace("p", 0, 2);
  for (int i = 0; i < 5; ++i) const TraceSpan span("operator", "x");
  ASSERT_TRUE(write_trace(files, "/p").ok());
  const std::string text = files.read("/p", 1u << 20).value();
  EXPECT_NE(text.find("3 later events left out"), std::string::npos) << text;
}

TEST(Trace, costs_nothing_and_keeps_nothing_while_closed) {
  FakeFiles files;
  { const TraceSpan span("operator", "x"); }
  open_trace("p", 0);
  ASSERT_TRUE(write_trace(files, "/p").ok());
  EXPECT_EQ(files.read("/p", 1u << 20).value().find("\"X\""), std::string::npos);
}

}  // namespace
}  // namespace evenkeel::base
