// Calls on the API server with typed paths: rate limit, token, 429, and one meaning for each answer. Used by
// list_watch and by operator/act. Thread safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "operator/kube/api_types.h"
#include "operator/kube/credentials.h"
#include "operator/kube/rate_limiter.h"
#include "operator/kube/transport.h"

namespace evenkeel::oper {

// What a call cost; implemented by runtime's metrics. Thread safe.
class RequestObserver {
 public:
  virtual ~RequestObserver() = default;
  struct Sample {
    std::string verb;    // GET LIST POST PATCH DELETE WATCH
    std::string method;  // HTTP method
    std::string code;    // "200"; "<error>" when no answer came
    double seconds = 0;
    double limiter_seconds = 0;
    std::size_t request_bytes = 0;
    std::size_t response_bytes = 0;
  };
  virtual void request_done(const Sample& sample) = 0;
  virtual void request_retried(const std::string& verb, const std::string& code) = 0;
};

// Where the token comes from; Credentials in production.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual std::string authorization() = 0;
  virtual void rejected() = 0;
};

class CredentialTokens : public TokenSource {
 public:
  explicit CredentialTokens(Credentials& credentials) : credentials_(credentials) {}
  std::string authorization() override { return credentials_.authorization(); }
  void rejected() override { credentials_.rejected(); }

 private:
  Credentials& credentials_;
};

struct ClientOptions {
  double qps = 300;
  double burst = 600;
  base::Duration request_deadline = std::chrono::seconds(15);
  std::size_t max_object_bytes = 8u << 20;
  std::size_t max_list_bytes = 128u << 20;
  int max_tries_on_429 = 10;
};

struct ListQuery {
  std::string name_space;      // empty: all
  std::string label_selector;  // empty: all
  int limit = 500;
  std::string continue_token;
};

struct WatchQuery {
  std::string name_space;
  std::string label_selector;
  std::string resource_version;
  int timeout_seconds = 75;
};

struct DeleteOptions {
  std::string uid;               // precondition; never empty
  std::string resource_version;  // precondition where content decided; else empty
  std::optional<int> grace_seconds;
};

class ApiClient {
 public:
  // `clock.sleep_for` is how it waits: a clock that returns early at shutdown ends the waiting. All must
  // outlive this.
  ApiClient(Transport& transport, TokenSource& tokens, base::Clock& clock, ClientOptions options = {},
            RequestObserver* observer = nullptr);

  ApiReply get(const Resource& resource, const std::string& name_space, const std::string& name);
  ApiReply list(const Resource& resource, const ListQuery& query);
  ApiReply create(const Resource& resource, const std::string& name_space, const Json& object);
  ApiReply remove(const Resource& resource, const std::string& name_space, const std::string& name,
                  const DeleteOptions& options);
  ApiReply merge_patch(const Resource& resource, const std::string& name_space, const std::string& name,
                       const Json& patch);
  ApiReply merge_patch_status(const Resource& resource, const std::string& name_space,
                              const std::string& name, const Json& patch);
  // {"major", "minor", "gitVersion"}
  ApiReply version();

  struct WatchOpening {
    ApiReply reply;                  // kOk, or why not
    std::shared_ptr<Stream> stream;  // with kOk
  };
  WatchOpening watch(const Resource& resource, const WatchQuery& query);

  base::Clock& clock() { return clock_; }

  // From now on every call fails at once with kUnavailable: shutdown.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

 private:
  enum class Kind { kRead, kWrite };
  struct Call {
    std::string verb;
    HttpCall http;
    Kind kind = Kind::kRead;
    std::size_t max_bytes = 0;
  };
  ApiReply run(Call call);
  HttpReply send_once(const Call& call);
  ApiReply write(const std::string& verb, const std::string& method, std::string target, const Json& body,
                 const std::string& content_type);
  ApiReply read(const std::string& verb, std::string target, std::size_t max_bytes);

  Transport& transport_;
  TokenSource& tokens_;
  base::Clock& clock_;
  const ClientOptions options_;
  RequestObserver* observer_;
  RateLimiter limiter_;
  std::atomic<bool> stopped_{false};
};

// For query strings and path segments.
std::string url_encode(const std::string& text);

}  // namespace evenkeel::oper
