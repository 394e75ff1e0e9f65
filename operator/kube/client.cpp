#include "operator/kube/client.h"

#include <algorithm>
#include <cstdlib>

#include "contract/labels.h"

namespace evenkeel::oper {
namespace {

constexpr base::Duration kDefaultRetryAfter = std::chrono::seconds(1);
constexpr base::Duration kLongestRetryAfter = std::chrono::seconds(30);

std::string collection(const Resource& resource, const std::string& name_space) {
  return resource.root + (name_space.empty() ? "" : "/namespaces/" + url_encode(name_space)) + "/" +
         resource.plural;
}

std::string object_path(const Resource& resource, const std::string& name_space, const std::string& name) {
  return collection(resource, name_space) + "/" + url_encode(name);
}

std::optional<base::Duration> retry_after(const HttpReply& reply) {
  const auto found = reply.headers.find("retry-after");
  if (found == reply.headers.end()) return std::nullopt;
  const long seconds = std::strtol(found->second.c_str(), nullptr, 10);
  return std::clamp<base::Duration>(std::chrono::seconds(seconds), std::chrono::seconds(0),
                                    kLongestRetryAfter);
}

// "namespace ... is being terminated" comes as 403 with this cause.
bool namespace_terminating(const Json& status) {
  for (const Json& cause : base::at_path(status, {"details", "causes"}))
    if (base::string_at(cause, "reason") == "NamespaceTerminating") return true;
  return false;
}

ApiCode code_of_status(int status, const Json& body) {
  switch (status) {
    case 401:
      return ApiCode::kUnauthorized;
    case 404:
      return ApiCode::kNotFound;
    case 409:
      return base::string_at(body, "reason") == "AlreadyExists" ? ApiCode::kAlreadyExists
                                                                : ApiCode::kConflict;
    case 410:
      return ApiCode::kGone;
    case 413:
      return ApiCode::kTooLarge;
    case 429:
      return ApiCode::kTooManyRequests;
    case 400:
    case 405:
    case 415:
      return ApiCode::kRejected;
    case 403:
      return namespace_terminating(body) ? ApiCode::kNamespaceTerminating : ApiCode::kRejected;
    case 422:
      return ApiCode::kRejected;
    default:
      return ApiCode::kUnavailable;
  }
}

std::string first_words(const std::string& body) {
  std::string text = body.substr(0, 200);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

std::string url_encode(const std::string& text) {
  static const char* digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += digits[static_cast<unsigned char>(c) >> 4];
      out += digits[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
}

// A write without a whole, understood answer may have happened; a read simply failed.
ApiReply interpret(const HttpReply& http, bool is_write, std::size_t max_bytes) {
  ApiReply reply;
  reply.status = http.status;
  reply.retry_after = retry_after(http);
  const ApiCode lost = is_write ? ApiCode::kUnknownOutcome : ApiCode::kUnavailable;
  if (http.outcome != Outcome::kAnswered) {
    reply.code = http.outcome == Outcome::kNotSent ? ApiCode::kUnavailable : lost;
    if (http.outcome == Outcome::kTooLarge && !is_write) reply.code = ApiCode::kTooLarge;
    reply.message = http.error;
    return reply;
  }
  auto body = base::parse_json(http.body, {.max_bytes = max_bytes, .max_depth = 128});
  const bool success = http.status >= 200 && http.status < 300;
  if (success) {
    reply.code = body.ok() ? ApiCode::kOk : lost;
    if (body.ok())
      reply.object = std::move(*body);
    else
      reply.message =
          "HTTP " + std::to_string(http.status) + " with a body that is no JSON: " + body.error().message;
    return reply;
  }
  const Json status = body.ok() ? std::move(*body) : Json::object();
  reply.code = code_of_status(http.status, status);
  if (reply.code == ApiCode::kUnavailable) reply.code = lost;  // 3xx, 5xx, HTML from a proxy
  reply.reason = base::string_at(status, "reason");
  reply.message = base::string_at(status, "message", first_words(http.body)) + " (HTTP " +
                  std::to_string(http.status) + ")";
  return reply;
}

ApiClient::ApiClient(Transport& transport, TokenSource& tokens, base::Clock& clock, ClientOptions options,
                     RequestObserver* observer)
    : transport_(transport),
      tokens_(tokens),
      clock_(clock),
      options_(options),
      observer_(observer),
      limiter_(options.qps, options.burst) {}

HttpReply ApiClient::send_once(const Call& call) {
  const base::Duration wait = limiter_.reserve(clock_.now());
  if (wait > base::Duration{0}) clock_.sleep_for(wait);
  HttpCall http = call.http;
  http.authorization = tokens_.authorization();
  const base::MonotonicTime begin = clock_.now();
  HttpReply reply = transport_.send(http, options_.request_deadline, call.max_bytes);
  if (observer_) {
    observer_->request_done({call.verb, http.method,
                             reply.outcome == Outcome::kAnswered ? std::to_string(reply.status) : "<error>",
                             base::seconds(clock_.now() - begin), base::seconds(wait), http.body.size(),
                             reply.body.size()});
  }
  return reply;
}

ApiReply ApiClient::run(Call call) {
  bool token_was_read_again = false;
  for (int tries = 1;; ++tries) {
    if (stopped_) {
      ApiReply reply;
      reply.message = "shutting down";
      return reply;
    }
    ApiReply reply = interpret(send_once(call), call.kind == Kind::kWrite, call.max_bytes);
    if (reply.code == ApiCode::kUnauthorized && !token_was_read_again) {
      token_was_read_again = true;
      tokens_.rejected();
      if (observer_) observer_->request_retried(call.verb, "401");
      continue;
    }
    if (reply.code != ApiCode::kTooManyRequests || tries >= options_.max_tries_on_429) return reply;
    if (observer_) observer_->request_retried(call.verb, "429");
    clock_.sleep_for(reply.retry_after.value_or(kDefaultRetryAfter));
  }
}

ApiReply ApiClient::read(const std::string& verb, std::string target, std::size_t max_bytes) {
  return run({verb, {"GET", std::move(target), "", "", ""}, Kind::kRead, max_bytes});
}

ApiReply ApiClient::write(const std::string& verb, const std::string& method, std::string target,
                          const Json& body, const std::string& content_type) {
  return run({verb,
              {method, std::move(target), base::dump_json(body), content_type, ""},
              Kind::kWrite,
              options_.max_object_bytes});
}

ApiReply ApiClient::get(const Resource& resource, const std::string& name_space, const std::string& name) {
  return read("GET", object_path(resource, name_space, name), options_.max_object_bytes);
}

// No resourceVersion: the answer is consistent, never from a server that lags behind.
ApiReply ApiClient::list(const Resource& resource, const ListQuery& query) {
  std::string target = collection(resource, query.name_space) + "?limit=" + std::to_string(query.limit);
  if (!query.label_selector.empty()) target += "&labelSelector=" + url_encode(query.label_selector);
  if (!query.continue_token.empty()) target += "&continue=" + url_encode(query.continue_token);
  return read("LIST", std::move(target), options_.max_list_bytes);
}

ApiReply ApiClient::create(const Resource& resource, const std::string& name_space, const Json& object) {
  return write("POST", "POST", collection(resource, name_space) + "?fieldManager=" + contract::kFieldManager,
               object, "application/json");
}

ApiReply ApiClient::remove(const Resource& resource, const std::string& name_space, const std::string& name,
                           const DeleteOptions& options) {
  Json body{{"apiVersion", "v1"},
            {"kind", "DeleteOptions"},
            {"propagationPolicy", "Background"},
            {"preconditions", {{"uid", options.uid}}}};
  if (!options.resource_version.empty()) body["preconditions"]["resourceVersion"] = options.resource_version;
  if (options.grace_seconds) body["gracePeriodSeconds"] = *options.grace_seconds;
  return write("DELETE", "DELETE", object_path(resource, name_space, name), body, "application/json");
}

ApiReply ApiClient::merge_patch(const Resource& resource, const std::string& name_space,
                                const std::string& name, const Json& patch) {
  return write("PATCH", "PATCH",
               object_path(resource, name_space, name) + "?fieldManager=" + contract::kFieldManager, patch,
               "application/merge-patch+json");
}

ApiReply ApiClient::merge_patch_status(const Resource& resource, const std::string& name_space,
                                       const std::string& name, const Json& patch) {
  return write("PATCH", "PATCH",
               object_path(resource, name_space, name) + "/status?fieldManager=" + contract::kFieldManager,
               patch, "application/merge-patch+json");
}

ApiReply ApiClient::version() {
  return read("GET", "/version", options_.max_object_bytes);
}

ApiClient::WatchOpening ApiClient::watch(const Resource& resource, const WatchQuery& query) {
  WatchOpening opening;
  if (stopped_) return opening;
  HttpCall http{
      "GET",
      collection(resource, query.name_space) + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" +
          std::to_string(query.timeout_seconds) + "&resourceVersion=" + url_encode(query.resource_version),
      "", "", tokens_.authorization()};
  if (!query.label_selector.empty()) http.target += "&labelSelector=" + url_encode(query.label_selector);
  // The server's close may never arrive, and bookmarks come at no promised interval.
  const base::Duration longest = std::chrono::seconds(query.timeout_seconds + 5);
  const base::MonotonicTime begin = clock_.now();
  std::shared_ptr<Stream> stream = transport_.watch(http, {.deadline = longest, .idle_limit = longest});
  const HttpReply& head = stream->head();
  const bool open = head.outcome == Outcome::kAnswered && head.status == 200;
  if (observer_) {
    observer_->request_done({"WATCH", "GET",
                             head.outcome == Outcome::kAnswered ? std::to_string(head.status) : "<error>",
                             base::seconds(clock_.now() - begin), 0, 0, head.body.size()});
  }
  if (open) {
    opening.reply.code = ApiCode::kOk;
    opening.reply.status = 200;
    opening.stream = std::move(stream);
    return opening;
  }
  opening.reply = interpret(head, false, options_.max_object_bytes);
  if (opening.reply.ok()) opening.reply.code = ApiCode::kUnavailable;  // 2xx, but no stream
  if (opening.reply.code == ApiCode::kUnauthorized) tokens_.rejected();
  return opening;
}

}  // namespace evenkeel::oper
