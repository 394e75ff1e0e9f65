#include "tests/support/invariants/recorder/recorder.h"

#include <chrono>

namespace evenkeel::oper {
namespace {

constexpr base::Duration kAgain = std::chrono::milliseconds(50);

std::string meta(const Json& object, std::string_view key) {
  return base::string_at(base::child(object, "metadata"), key);
}

std::vector<Resource> recorded() {
  return {trainingjobs(), pods(), services(), config_maps(), {"/apis/coordination.k8s.io/v1", "leases", "Lease"}};
}

std::map<std::string, std::string> versions_of(const Json& list) {
  std::map<std::string, std::string> all;
  for (const Json& item : base::child(list, "items")) all[meta(item, "uid")] = meta(item, "resourceVersion");
  return all;
}

// No judge reads the first, and it is longer than the rest; what a ConfigMap holds is no question of an invariant.
Json without_ballast(Json object) {
  if (object.contains("metadata")) object["metadata"].erase("managedFields");
  if (base::string_at(object, "kind") == "ConfigMap") object.erase("data");
  return object;
}

}  // namespace

EventRecorder::EventRecorder(ApiClient& client, const std::string& file)
    : client_(client), file_(std::fopen(file.c_str(), "w")) {
  for (Resource& resource : recorded()) {
    feeds_.push_back(std::make_unique<Feed>());
    feeds_.back()->resource = std::move(resource);
  }
  for (auto& one : feeds_) one->thread = std::thread([this, &feed = *one] { follow(feed); });
}

EventRecorder::~EventRecorder() {
  stopped_ = true;
  {
    const std::lock_guard lock(mutex_);
    for (auto& feed : feeds_)
      if (feed->stream) feed->stream->cancel();
  }
  for (auto& feed : feeds_) feed->thread.join();
  if (file_) std::fclose(file_);
}

void EventRecorder::follow(Feed& feed) {
  while (!stopped_) {
    if (!feed.version.empty() || relist(feed)) watch(feed);
    if (!stopped_) client_.clock().sleep_for(kAgain);
  }
}

// At the start, and after a version was too old: what was missed is at least seen to have come or gone.
bool EventRecorder::relist(Feed& feed) {
  ApiReply reply =
      client_.list(feed.resource, {.name_space = "", .label_selector = "", .limit = 0, .continue_token = ""});
  if (!reply.ok()) return false;
  {
    const std::lock_guard lock(mutex_);
    feed.objects.clear();
  }
  for (Json& item : reply.object["items"]) {
    item["kind"] = feed.resource.kind;  // items of a list do not say it
    write_down(feed, "ADDED", item);
  }
  feed.version = meta(reply.object, "resourceVersion");
  return true;
}

void EventRecorder::watch(Feed& feed) {
  auto opening = client_.watch(
      feed.resource, {.name_space = "", .label_selector = "", .resource_version = feed.version});
  if (opening.reply.code == ApiCode::kGone) feed.version.clear();
  if (!opening.reply.ok()) return;
  {
    const std::lock_guard lock(mutex_);
    feed.stream = opening.stream;
  }
  while (!stopped_ && !feed.version.empty()) {  // take_line empties it when it is too old
    const auto line = opening.stream->next_line();
    if (!line.ok()) break;
    take_line(feed, *line);
  }
  const std::lock_guard lock(mutex_);
  feed.stream.reset();
}

void EventRecorder::take_line(Feed& feed, const std::string& line) {
  const auto event = base::parse_json(line, {.max_bytes = 8u << 20});
  if (!event.ok()) return;
  const std::string type = base::string_at(*event, "type");
  if (type == "ERROR") return feed.version.clear();
  const Json& object = base::child(*event, "object");
  if (type != "BOOKMARK") write_down(feed, type, object);
  feed.version = meta(object, "resourceVersion");
}

void EventRecorder::write_down(Feed& feed, const std::string& type, const Json& object) {
  const auto now = client_.clock().wall_now().time_since_epoch();
  const Json line{{"type", type}, {"seen", base::seconds(now)}, {"object", without_ballast(object)}};
  const std::string text = base::dump_json(line) + "\n";
  const std::lock_guard lock(mutex_);
  if (type == "DELETED")
    feed.objects.erase(meta(object, "uid"));
  else
    feed.objects[meta(object, "uid")] = meta(object, "resourceVersion");
  if (!file_) return;
  std::fwrite(text.data(), 1, text.size(), file_);
  std::fflush(file_);
}

bool EventRecorder::is_level(Feed& feed) {
  const ApiReply reply =
      client_.list(feed.resource, {.name_space = "", .label_selector = "", .limit = 0, .continue_token = ""});
  const std::lock_guard lock(mutex_);
  return file_ && reply.ok() && versions_of(reply.object) == feed.objects;
}

bool EventRecorder::drain(base::Duration limit) {
  const base::MonotonicTime deadline = client_.clock().now() + limit;
  for (auto& feed : feeds_)
    while (!is_level(*feed)) {
      if (client_.clock().now() > deadline) return false;
      client_.clock().sleep_for(kAgain);
    }
  return true;
}

}  // namespace evenkeel::oper
