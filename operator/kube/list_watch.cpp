#include "operator/kube/list_watch.h"

#include "base/log.h"

namespace evenkeel::oper {
namespace {

constexpr base::Duration kAtOnce{0};
// A watch that ends this soon without an event is no watch: without a wait it would be a loop.
constexpr base::Duration kShortestWatch = std::chrono::seconds(1);

bool has_cause(const Json& status, const std::string& reason) {
  for (const Json& cause : base::at_path(status, {"details", "causes"}))
    if (base::string_at(cause, "reason") == reason) return true;
  return false;
}

}  // namespace

ListWatch::ListWatch(ApiClient& client, ListWatchConfig config, ObjectStore& store, WatchObserver* observer,
                     unsigned seed)
    : client_(client),
      config_(std::move(config)),
      store_(store),
      observer_(observer),
      backoff_({}, seed),
      random_(seed) {}

void ListWatch::run() {
  while (!client_.stopped()) {
    const base::Duration wait = step();
    if (wait > kAtOnce && !client_.stopped()) client_.clock().sleep_for(wait);
  }
}

base::Duration ListWatch::step() {
  return needs_list() ? list() : watch();
}

void ListWatch::cancel() {
  const std::lock_guard lock(stream_mutex_);
  if (stream_) stream_->cancel();
}

base::Duration ListWatch::failed(const std::string& what, const std::string& message,
                                 std::optional<base::Duration> retry_after) {
  const base::Duration wait = retry_after.value_or(backoff_.next(client_.clock().now()));
  if (!client_.stopped()) {
    base::log_warning(what, {{"resource", config_.resource.plural},
                             {"namespace", config_.name_space},
                             {"error", message},
                             {"retry_seconds", base::seconds(wait)}});
  }
  return wait;
}

void ListWatch::restarted(const std::string& reason) {
  if (observer_ && !client_.stopped()) observer_->watch_restarted(config_.resource.plural, reason);
}

base::Duration ListWatch::list() {
  ListQuery query{.name_space = config_.name_space,
                  .label_selector = config_.label_selector,
                  .limit = 500,
                  .continue_token = ""};
  std::set<std::string> uids;
  std::string version;
  do {
    ApiReply page = client_.list(config_.resource, query);
    // A 410 in mid-list: the token is too old; all pages again.
    if (!page.ok()) return failed("list failed", page.message, page.retry_after);
    const auto items = page.object.find("items");
    if (items != page.object.end() && items->is_array()) {
      for (Json& item : *items) {
        uids.insert(base::string_at(base::child(item, "metadata"), "uid"));
        store_.put(std::move(item));
      }
    }
    const Json& metadata = base::child(page.object, "metadata");
    version = base::string_at(metadata, "resourceVersion");
    query.continue_token = base::string_at(metadata, "continue");
  } while (!query.continue_token.empty());
  if (version.empty()) return failed("list failed", "the list has no resourceVersion", std::nullopt);
  store_.keep_only(config_.name_space, uids);
  store_.mark_synced(config_.name_space);
  version_ = version;
  return kAtOnce;
}

base::Duration ListWatch::watch() {
  const int timeout = std::uniform_int_distribution(60, 90)(random_);
  const base::MonotonicTime begin = client_.clock().now();
  ApiClient::WatchOpening opening = client_.watch(config_.resource, {.name_space = config_.name_space,
                                                                     .label_selector = config_.label_selector,
                                                                     .resource_version = version_,
                                                                     .timeout_seconds = timeout});
  if (!opening.reply.ok()) {
    const bool expired = opening.reply.code == ApiCode::kGone ||
                         has_cause(opening.reply.object, "ResourceVersionTooLarge") ||
                         opening.reply.message.find("Too large resource version") != std::string::npos;
    if (expired) version_.clear();
    restarted(expired ? "expired" : "error");
    return failed("watch refused", opening.reply.message, opening.reply.retry_after);
  }
  if (observer_) observer_->watch_alive(config_.resource.plural);
  {
    const std::lock_guard lock(stream_mutex_);
    stream_ = opening.stream;
  }
  if (client_.stopped()) opening.stream->cancel();
  const WatchResult result = read(*opening.stream);
  {
    const std::lock_guard lock(stream_mutex_);
    stream_.reset();
  }
  if (result.end == End::kExpired) version_.clear();
  const bool too_short = result.events == 0 && client_.clock().now() - begin < kShortestWatch;
  const End end = result.end == End::kClosed && too_short ? End::kError : result.end;
  restarted(end == End::kClosed ? "closed" : end == End::kExpired ? "expired" : "error");
  if (end == End::kClosed) return kAtOnce;
  return failed("watch ended", result.message, result.retry_after);
}

ListWatch::WatchResult ListWatch::read(Stream& stream) {
  int events = 0;
  while (true) {
    const auto line = stream.next_line();
    std::optional<WatchResult> end;
    if (!line.ok()) {
      // The server's orderly close and our own time limit are the normal ends of a watch.
      const bool normal = line.error().code == base::ErrorCode::kAborted ||
                          line.error().code == base::ErrorCode::kDeadlineExceeded;
      end = WatchResult{normal ? End::kClosed : End::kError, line.error().message, std::nullopt, 0};
    } else {
      end = handle(*line);
      ++events;
    }
    if (end) {
      end->events = events;
      return *end;
    }
  }
}

// The type is decoded before the object: the object of an ERROR is a Status, not a Pod.
std::optional<ListWatch::WatchResult> ListWatch::handle(const std::string& line) {
  auto event = base::parse_json(line, {.max_bytes = 64u << 20, .max_depth = 128});
  if (!event.ok())
    return WatchResult{End::kError, "an event is no JSON: " + event.error().message, std::nullopt, 0};
  const std::string type = base::string_at(*event, "type");
  const auto object = event->find("object");
  if (object == event->end() || !object->is_object())
    return WatchResult{End::kError, "an event of type '" + type + "' has no object", std::nullopt, 0};
  if (type == "ERROR") return handle_error(*object);
  if (observer_) {
    observer_->watch_event(config_.resource.plural, type);
    observer_->watch_alive(config_.resource.plural);
  }
  const Json& metadata = base::child(*object, "metadata");
  const std::string version = base::string_at(metadata, "resourceVersion");
  if (type == "ADDED" || type == "MODIFIED") {
    store_.put(std::move(*object));
  } else if (type == "DELETED") {
    store_.erase(base::string_at(metadata, "uid"));
  } else if (type != "BOOKMARK") {
    return WatchResult{End::kError, "an event of unknown type '" + type + "'", std::nullopt, 0};
  }
  if (!version.empty()) version_ = version;
  return std::nullopt;
}

ListWatch::WatchResult ListWatch::handle_error(const Json& status) const {
  WatchResult result;
  const std::string reason = base::string_at(status, "reason");
  const std::int64_t code = base::int_at(status, "code");
  result.message = reason + ": " + base::string_at(status, "message");
  if (code == 410 || reason == "Expired" || reason == "Gone" || has_cause(status, "ResourceVersionTooLarge"))
    result.end = End::kExpired;
  const std::int64_t seconds = base::int_at(base::child(status, "details"), "retryAfterSeconds");
  if (seconds > 0)
    result.retry_after = std::min<base::Duration>(std::chrono::seconds(seconds), std::chrono::seconds(30));
  return result;
}

}  // namespace evenkeel::oper
