#include "operator/act/event_recorder.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/time_text.h"
#include "contract/labels.h"

namespace evenkeel::oper {
namespace {

constexpr std::size_t kQueue = 1000;
constexpr std::size_t kBudgets = 4096;  // objects remembered; beyond that all start afresh
// 25 at once, then one in five minutes: the numbers of client-go's spam filter.
constexpr double kBurst = 25;
constexpr double kPerSecond = 1.0 / 300;
constexpr std::size_t kNoteBytes = 1024;

std::string cut(std::string text) {
  if (text.size() <= kNoteBytes) return text;
  std::size_t end = kNoteBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text;
}

// MicroTime wants six digits.
std::string micro_time(base::WallTime time) {
  std::string text = base::to_rfc3339(time);
  if (!text.empty() && text.back() == 'Z') text.replace(text.size() - 1, 1, ".000000Z");
  return text;
}

}  // namespace

EventRecorder::EventRecorder(ApiClient& client, std::string instance)
    : client_(client), instance_(std::move(instance)) {}

EventRecorder::~EventRecorder() {
  stop();
}

void EventRecorder::start() {
  thread_ = std::thread([this] { run(); });
}

void EventRecorder::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool EventRecorder::within_budget(const std::string& job_uid) {
  if (budgets_.size() >= kBudgets) budgets_.clear();
  auto& budget = budgets_[job_uid];
  if (!budget) budget = std::make_unique<RateLimiter>(kPerSecond, kBurst);
  return budget->try_take(client_.clock().now());
}

Json EventRecorder::make_event(const JobRef& job, const EventNote& note) const {
  const std::string text = cut(note.message);
  const std::string identity = base::sha256_hex(job.uid + "|" + note.reason + "|" + text).substr(0, 16);
  return Json{
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata", {{"name", job.name + "." + identity}, {"namespace", job.name_space}}},
      {"eventTime", micro_time(client_.clock().wall_now())},
      {"reportingController", "training.evenkeel.dev/operator"},
      {"reportingInstance", instance_},
      {"action", "Reconcile"},
      {"type", note.warning ? "Warning" : "Normal"},
      {"reason", note.reason},
      {"note", text},
      {"regarding",
       {{"apiVersion", contract::kApiVersion},
        {"kind", contract::kKind},
        {"namespace", job.name_space},
        {"name", job.name},
        {"uid", job.uid},
        {"resourceVersion", job.resource_version}}},
  };
}

void EventRecorder::record(const JobRef& job, const EventNote& note) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= kQueue || !within_budget(job.uid)) {
      ++dropped_;
      return;
    }
    queue_.push_back(make_event(job, note));
  }
  changed_.notify_one();
}

void EventRecorder::send(const Json& event) {
  const std::string name_space = base::string_at(base::child(event, "metadata"), "namespace");
  const std::string name = base::string_at(base::child(event, "metadata"), "name");
  ApiReply reply = client_.create(events(), name_space, event);
  if (reply.code == ApiCode::kAlreadyExists) {
    // A count that is exact is not worth a read: "said again, last at".
    reply =
        client_.merge_patch(events(), name_space, name,
                            Json{{"series", {{"count", 2}, {"lastObservedTime", event.at("eventTime")}}}});
  }
  if (reply.ok()) return;
  ++dropped_;
  base::log_debug("event was not written", {{"event", name}, {"error", reply.message}});
}

void EventRecorder::run() {
  while (true) {
    Json event;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      event = std::move(queue_.front());
      queue_.pop_front();
    }
    send(event);
  }
}

}  // namespace evenkeel::oper
