#include "operator/kube/transport_cpprest.h"

#include <cpprest/http_client.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pplx/threadpool.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "operator/kube/line_framer.h"
#include "operator/kube/openssl_pointers.h"

namespace evenkeel::oper {
namespace {

namespace http = web::http;
using Buffer = concurrency::streams::streambuf<std::uint8_t>;
using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>;

constexpr std::size_t kPieceBytes = 64u << 10;
// C6: the library's own time-out is inactivity; ours ends calls long before. It only frees what we have given
// up.
constexpr std::chrono::seconds kRequestInactivity{60};

// ---- TLS ----

std::vector<Certificate> read_certificates(const std::string& pem) {
  std::vector<Certificate> list;
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) list.emplace_back(one);
  ERR_clear_error();  // the end of the text is reported as an error
  return list;
}

// Runs on each new connection, so that a rolled CA or client certificate is used from the next connection on.
// C12: only the cluster's CA is trusted, not the system's.
void prepare_tls(SSL_CTX* context, Credentials& credentials) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  X509_STORE* store = X509_STORE_new();
  for (const Certificate& ca : read_certificates(credentials.ca_pem())) X509_STORE_add_cert(store, ca.get());
  SSL_CTX_set_cert_store(context, store);  // takes ownership
  const std::vector<Certificate> chain = read_certificates(credentials.certificate_pem());
  if (chain.empty()) return;
  SSL_CTX_use_certificate(context, chain.front().get());
  for (std::size_t i = 1; i < chain.size(); ++i) SSL_CTX_add1_chain_cert(context, chain[i].get());
  const std::string key_pem = credentials.key_pem();
  const Bio bio(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  const PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (key) SSL_CTX_use_PrivateKey(context, key.get());
}

bool is_ip(const std::string& host) {
  ASN1_OCTET_STRING* ip = a2i_IPADDRESS(host.c_str());
  if (!ip) ERR_clear_error();
  ASN1_OCTET_STRING_free(ip);
  return ip != nullptr;
}

// C13: the library would accept a common name although a subject alternative name differs.
void check_subject(void* native_handle, const std::string& name) {
  SSL* ssl = static_cast<TlsStream*>(native_handle)->native_handle();
  X509_VERIFY_PARAM* parameters = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(parameters,
                                  X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (is_ip(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(parameters, name.c_str(), name.size());
  }
}

http::client::http_client_config make_config(Credentials& credentials, base::Duration inactivity) {
  http::client::http_client_config config;
  config.set_max_redirects(0);  // C3: Authorization would go along
  config.set_https_to_http_redirects(false);
  config.set_request_compressed_response(false);  // C18
  config.set_timeout(std::chrono::duration_cast<std::chrono::microseconds>(inactivity));
  const ServerAddress& server = credentials.server();
  if (!server.tls) return config;
  const std::string name = server.server_name.empty() ? server.host : server.server_name;
  config.set_validate_certificates(true);
  config.set_tlsext_sni_enabled(!is_ip(name));  // C14
  config.set_ssl_context_callback([&credentials](boost::asio::ssl::context& context) {
    prepare_tls(context.native_handle(), credentials);
  });
  config.set_nativehandle_options(
      [name](http::client::native_handle handle) { check_subject(handle, name); });
  return config;
}

std::string base_uri(const ServerAddress& server) {
  const std::string host = server.host.find(':') == std::string::npos ? server.host : "[" + server.host + "]";
  return std::string(server.tls ? "https://" : "http://") + host + ":" + std::to_string(server.port);
}

// ---- waiting with a deadline ----

// One value that a pool thread delivers and our own thread waits for (C11). Lives as long as either holds it.
template <class T>
class Mailbox {
 public:
  void put(T value) {
    {
      const std::lock_guard lock(mutex_);
      value_ = std::move(value);
    }
    filled_.notify_all();
  }
  std::optional<T> wait_until(base::MonotonicTime deadline) {
    std::unique_lock lock(mutex_);
    filled_.wait_until(lock, deadline, [&] { return value_.has_value(); });
    return std::exchange(value_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::optional<T> value_;
};

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    const std::string text = exception.what();
    return text.empty() ? "cancelled" : text;
  } catch (...) {
    return "unknown error";
  }
}

// Only these three say for certain that no byte of the request left.
bool never_sent(const std::string& message) {
  return message.rfind("Failed to connect to any resolved endpoint", 0) == 0 ||
         message.rfind("Error resolving address", 0) == 0 || message.rfind("Error in SSL handshake", 0) == 0;
}

struct HeadResult {
  std::optional<http::http_response> response;
  std::string error;
};

struct ReadResult {
  std::size_t bytes = 0;  // 0: the end
  std::string error;
};

// One exchange: request out, head in, body piece by piece. One cancellation token each (C9).
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(std::shared_ptr<http::client::http_client> client, const Credentials& credentials)
      : client_(std::move(client)), server_(credentials.server()) {}

  HttpReply open(const HttpCall& call, base::MonotonicTime deadline) {
    auto box = std::make_shared<Mailbox<HeadResult>>();
    try {
      http::http_request request = make_request(call);
      client_->request(request, cancel_.get_token()).then([box](pplx::task<http::http_response> task) {
        HeadResult result;
        try {
          result.response = task.get();
        } catch (...) {
          result.error = message_of(std::current_exception());
        }
        box->put(std::move(result));
      });
    } catch (const std::exception& error) {
      return failed(Outcome::kNotSent, error.what());
    }
    std::optional<HeadResult> result = box->wait_until(deadline);
    if (!result) {
      cancel();
      return failed(Outcome::kUnknown, "no answer in time");
    }
    if (!result->response) {
      return failed(never_sent(result->error) ? Outcome::kNotSent : Outcome::kUnknown, result->error);
    }
    return take_head(*result->response);
  }

  // Up to 64 KiB; the buffer belongs to this object, which the pool thread keeps alive while it may write to
  // it.
  base::Result<std::string_view> read(base::MonotonicTime deadline) {
    auto box = std::make_shared<Mailbox<ReadResult>>();
    try {
      const auto self = shared_from_this();
      // One byte if nothing is there yet: the library waits for as many as it is asked for.
      const std::size_t want = std::clamp<std::size_t>(body_.in_avail(), 1, piece_.size());
      body_.getn(piece_.data(), want).then([box, self](pplx::task<std::size_t> task) {
        ReadResult result;
        try {
          result.bytes = task.get();
        } catch (...) {
          result.error = message_of(std::current_exception());
        }
        box->put(std::move(result));
      });
    } catch (const std::exception& error) {
      return base::Error{base::ErrorCode::kUnavailable, std::string("reading the answer: ") + error.what()};
    }
    std::optional<ReadResult> result = box->wait_until(deadline);
    if (!result) {
      cancel();
      return base::Error{base::ErrorCode::kDeadlineExceeded, "the answer did not end in time"};
    }
    if (!result->error.empty())
      return base::Error{base::ErrorCode::kUnavailable, "reading the answer: " + result->error};
    if (result->bytes == 0) {
      // The stream also ends, without an error, when the library gave up on the connection.
      EVENKEEL_TRY(completed(deadline));
    }
    return std::string_view(reinterpret_cast<const char*>(piece_.data()), result->bytes);
  }

  std::size_t buffered_bytes() { return body_ ? body_.in_avail() : 0; }
  void cancel() { cancel_.cancel(); }

 private:
  http::http_request make_request(const HttpCall& call) const {
    http::http_request request(call.method);
    request.set_request_uri(web::uri(server_.base_path + call.target));
    request.headers().add("Accept", "application/json");
    // With the process, so that an audit log tells an operator from the one before it.
    request.headers().add("User-Agent",
                          "evenkeel-operator/" EVENKEEL_VERSION " (pid " + std::to_string(getpid()) + ")");
    if (!server_.server_name.empty()) request.headers().add("Host", server_.server_name);
    if (!call.authorization.empty()) request.headers().add("Authorization", call.authorization);
    if (!call.body.empty()) request.set_body(call.body, call.content_type);
    return request;
  }

  HttpReply take_head(http::http_response response) {
    HttpReply reply;
    reply.outcome = Outcome::kAnswered;
    reply.status = response.status_code();
    for (const auto& [name, value] : response.headers()) {
      std::string lower = name;
      std::transform(lower.begin(), lower.end(), lower.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      reply.headers[lower] = value;
    }
    body_ = response.body().streambuf();
    response_ = std::move(response);
    return reply;
  }

  base::Status completed(base::MonotonicTime deadline) {
    auto box = std::make_shared<Mailbox<std::string>>();
    response_->content_ready().then([box](pplx::task<http::http_response> task) {
      try {
        task.get();
        box->put("");
      } catch (...) {
        box->put(message_of(std::current_exception()));
      }
    });
    const std::optional<std::string> error = box->wait_until(deadline);
    if (!error) return base::Error{base::ErrorCode::kDeadlineExceeded, "the answer did not end in time"};
    if (!error->empty()) return base::Error{base::ErrorCode::kUnavailable, "reading the answer: " + *error};
    return {};
  }

  static HttpReply failed(Outcome outcome, std::string error) {
    HttpReply reply;
    reply.outcome = outcome;
    reply.error = std::move(error);
    return reply;
  }

  std::shared_ptr<http::client::http_client> client_;
  const ServerAddress& server_;
  pplx::cancellation_token_source cancel_;
  std::optional<http::http_response> response_;
  Buffer body_;
  std::vector<std::uint8_t> piece_ = std::vector<std::uint8_t>(kPieceBytes);
};

// Reads the whole body into reply.body. The outcome is set to what is known when it fails.
void read_body(Exchange& exchange, HttpReply& reply, base::MonotonicTime deadline, std::size_t max_bytes) {
  while (true) {
    const auto piece = exchange.read(deadline);
    if (!piece.ok()) {
      reply.outcome = Outcome::kUnknown;
      reply.error = piece.error().message;
      return;
    }
    if (piece->empty()) return;
    if (reply.body.size() + piece->size() > max_bytes || exchange.buffered_bytes() > max_bytes) {
      exchange.cancel();
      reply.outcome = Outcome::kTooLarge;
      reply.error = "the answer is larger than " + std::to_string(max_bytes) + " bytes";
      reply.body.clear();
      return;
    }
    reply.body.append(*piece);
  }
}

class CpprestStream : public Stream {
 public:
  CpprestStream(std::shared_ptr<Exchange> exchange, const HttpCall& call, const WatchLimits& limits)
      : exchange_(std::move(exchange)),
        limits_(limits),
        framer_(limits.max_line_bytes),
        deadline_(base::real_clock().now() + limits.deadline) {
    head_ = exchange_->open(call, std::min(deadline_, base::real_clock().now() + limits.idle_limit));
    if (head_.outcome == Outcome::kAnswered && head_.status != 200)
      read_body(*exchange_, head_, base::real_clock().now() + std::chrono::seconds(10), 1u << 20);
  }
  ~CpprestStream() override { exchange_->cancel(); }

  const HttpReply& head() const override { return head_; }
  void cancel() override { exchange_->cancel(); }

  base::Result<std::string> next_line() override {
    while (true) {
      if (auto line = framer_.next()) return std::move(*line);
      if (framer_.overflowed())
        return too_much("one event is larger than " + std::to_string(limits_.max_line_bytes));
      // C8: the library reads on without end while we are busy.
      if (exchange_->buffered_bytes() > limits_.max_buffered_bytes)
        return too_much("more is waiting to be read than " + std::to_string(limits_.max_buffered_bytes));
      const auto piece = exchange_->read(std::min(deadline_, base::real_clock().now() + limits_.idle_limit));
      if (!piece.ok()) return piece.error();
      if (piece->empty()) return base::Error{base::ErrorCode::kAborted, "the server closed the watch"};
      framer_.add(*piece);
    }
  }

 private:
  base::Error too_much(const std::string& what) {
    exchange_->cancel();
    return {base::ErrorCode::kInvalidInput, "watch: " + what + " bytes"};
  }

  std::shared_ptr<Exchange> exchange_;
  WatchLimits limits_;
  LineFramer framer_;
  base::MonotonicTime deadline_;
  HttpReply head_;
};

class CpprestTransport : public Transport {
 public:
  explicit CpprestTransport(Credentials& credentials)
      : credentials_(credentials), client_(new_client(kRequestInactivity)) {}

  HttpReply send(const HttpCall& call, base::Duration limit, std::size_t max_bytes) override {
    const base::MonotonicTime deadline = base::real_clock().now() + limit;
    const auto exchange = std::make_shared<Exchange>(client_, credentials_);
    HttpReply reply = exchange->open(call, deadline);
    if (reply.outcome == Outcome::kAnswered) read_body(*exchange, reply, deadline, max_bytes);
    return reply;
  }

  std::shared_ptr<Stream> watch(const HttpCall& call, const WatchLimits& limits) override {
    // A client of its own has a pool of its own: a connection that died unseen is never used again.
    const auto client = new_client(limits.idle_limit + std::chrono::seconds(5));
    return std::make_shared<CpprestStream>(std::make_shared<Exchange>(client, credentials_), call, limits);
  }

 private:
  std::shared_ptr<http::client::http_client> new_client(base::Duration inactivity) {
    return std::make_shared<http::client::http_client>(web::uri(base_uri(credentials_.server())),
                                                       make_config(credentials_, inactivity));
  }

  Credentials& credentials_;
  std::shared_ptr<http::client::http_client> client_;
};

}  // namespace

void init_transport_threads(int threads) {
  crossplat::threadpool::initialize_with_threads(static_cast<std::size_t>(threads));
}

std::unique_ptr<Transport> make_cpprest_transport(Credentials& credentials) {
  return std::make_unique<CpprestTransport>(credentials);
}

}  // namespace evenkeel::oper
