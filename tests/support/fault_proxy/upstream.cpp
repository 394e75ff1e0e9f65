#include "tests/support/fault_proxy/upstream.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "operator/kube/openssl_pointers.h"

namespace evenkeel::support {
namespace {

using oper::Bio;
using oper::Certificate;
using oper::PrivateKey;

base::Error broken(const std::string& what) {
  std::string reason = "no reason known";
  if (const unsigned long code = ERR_get_error()) reason = ERR_reason_error_string(code) ? ERR_reason_error_string(code) : "?";
  ERR_clear_error();
  return {base::ErrorCode::kUnavailable, "TLS to the API server, " + what + ": " + reason};
}

Certificate certificate_of(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

base::Status load(SSL_CTX* context, oper::Credentials& credentials) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  const Certificate ca = certificate_of(credentials.ca_pem());
  if (!ca) return broken("reading the CA");
  X509_STORE* store = X509_STORE_new();  // of this CA alone
  X509_STORE_add_cert(store, ca.get());
  SSL_CTX_set_cert_store(context, store);  // takes ownership
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  const std::string own = credentials.certificate_pem();
  if (own.empty()) return {};
  const Certificate certificate = certificate_of(own);
  const std::string key_pem = credentials.key_pem();
  const Bio bio(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  const PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate || !key || SSL_CTX_use_certificate(context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return broken("reading the client certificate");
  return {};
}

base::Status poll_for(int fd, short events, base::MonotonicTime deadline, const base::Waker* waker) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - base::real_clock().now()).count();
    std::array<pollfd, 2> polled{{{fd, events, 0}, {waker ? waker->fd() : -1, POLLIN, 0}}};
    const int ready = poll(polled.data(), polled.size(), static_cast<int>(std::clamp<long>(left, 0, 60'000)));
    if (ready > 0 && polled[1].revents != 0) return base::Error{base::ErrorCode::kAborted, "stopped on purpose"};
    if (ready > 0 && polled[0].revents != 0) return {};
    if (ready < 0 && errno != EINTR) return base::Error{base::ErrorCode::kInternal, "poll failed"};
    if (left <= 0) return base::Error{base::ErrorCode::kDeadlineExceeded, "no answer in the time given"};
  }
}

}  // namespace

struct TlsContext {
  SSL_CTX* context = nullptr;
  ~TlsContext() { SSL_CTX_free(context); }
};

struct Upstream::Session {
  SSL* ssl = nullptr;
  ~Session() { SSL_free(ssl); }
};

UpstreamTarget::UpstreamTarget(oper::AccessConfig access)
    : credentials_(std::move(access), base::real_files(), base::real_clock()) {}
UpstreamTarget::~UpstreamTarget() = default;

base::Result<std::unique_ptr<UpstreamTarget>> UpstreamTarget::make(oper::AccessConfig access) {
  std::unique_ptr<UpstreamTarget> target(new UpstreamTarget(std::move(access)));
  if (!target->credentials_.server().tls) return target;
  target->tls_ = std::make_unique<TlsContext>();
  target->tls_->context = SSL_CTX_new(TLS_client_method());
  EVENKEEL_TRY(load(target->tls_->context, target->credentials_));
  return target;
}

std::string UpstreamTarget::host_field() const {
  return credentials_.server().host + ":" + std::to_string(credentials_.server().port);
}

Upstream::Upstream() = default;
Upstream::Upstream(Upstream&&) noexcept = default;
Upstream& Upstream::operator=(Upstream&&) noexcept = default;
Upstream::~Upstream() = default;

base::Result<Upstream> Upstream::connect(const UpstreamTarget& target, base::MonotonicTime deadline,
                                         const base::Waker* waker) {
  const oper::ServerAddress& server = target.credentials_.server();
  Upstream upstream;
  EVENKEEL_ASSIGN(upstream.socket_, base::connect_to({server.host, server.port}, deadline, waker));
  if (!target.tls_) return upstream;
  upstream.session_ = std::make_unique<Session>();
  SSL* ssl = upstream.session_->ssl = SSL_new(target.tls_->context);
  SSL_set_fd(ssl, upstream.socket_.fd());
  const std::string& name = server.server_name.empty() ? server.host : server.server_name;
  X509_VERIFY_PARAM* checks = SSL_get0_param(ssl);
  in_addr ip{};
  if (inet_pton(AF_INET, name.c_str(), &ip) == 1) {
    X509_VERIFY_PARAM_set1_ip_asc(checks, name.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(checks, name.c_str(), 0);
    SSL_set_tlsext_host_name(ssl, name.c_str());
  }
  while (true) {
    ERR_clear_error();
    const int result = SSL_connect(ssl);
    if (result == 1) return upstream;
    EVENKEEL_TRY(upstream.wait_for(result, deadline, waker));
  }
}

// What the last call of OpenSSL asked for.
base::Status Upstream::wait_for(int result, base::MonotonicTime deadline, const base::Waker* waker) {
  switch (SSL_get_error(session_->ssl, result)) {
    case SSL_ERROR_WANT_READ:
      return poll_for(socket_.fd(), POLLIN, deadline, waker);
    case SSL_ERROR_WANT_WRITE:
      return poll_for(socket_.fd(), POLLOUT, deadline, waker);
    default:
      return broken("connection lost");
  }
}

base::Status Upstream::send(std::string_view bytes, base::MonotonicTime deadline, const base::Waker* waker) {
  if (!session_) return socket_.send_all(std::as_bytes(std::span(bytes)), deadline, waker);
  while (!bytes.empty()) {
    ERR_clear_error();
    const int count = SSL_write(session_->ssl, bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 16384)));
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else {
      EVENKEEL_TRY(wait_for(count, deadline, waker));
    }
  }
  return {};
}

base::Result<std::string> Upstream::receive(base::MonotonicTime deadline, const base::Waker* waker) {
  std::string bytes(16384, 0);
  if (!session_) {
    EVENKEEL_ASSIGN(const std::size_t count, socket_.receive_some(std::as_writable_bytes(std::span(bytes)), deadline, waker));
    bytes.resize(count);
    return bytes;
  }
  while (true) {
    ERR_clear_error();
    const int count = SSL_read(session_->ssl, bytes.data(), static_cast<int>(bytes.size()));
    if (count > 0) {
      bytes.resize(static_cast<std::size_t>(count));
      return bytes;
    }
    if (SSL_get_error(session_->ssl, count) == SSL_ERROR_ZERO_RETURN) return std::string();
    EVENKEEL_TRY(wait_for(count, deadline, waker));
  }
}

}  // namespace evenkeel::support
