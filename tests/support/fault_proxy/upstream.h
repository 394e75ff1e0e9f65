// The connection to the real API server: TLS with its CA and our client certificate, or plain to a server of this
// machine. Used by connection.cpp, one thread a connection; an UpstreamTarget serves all threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/socket.h"
#include "operator/kube/credentials.h"

namespace evenkeel::support {

struct TlsContext;  // of OpenSSL

class UpstreamTarget {
 public:
  // Reads CA, certificate and key once.
  static base::Result<std::unique_ptr<UpstreamTarget>> make(oper::AccessConfig access);
  ~UpstreamTarget();
  std::string host_field() const;
  // "Bearer ...", or empty: then the client certificate says who we are.
  std::string authorization() { return credentials_.authorization(); }

 private:
  friend class Upstream;
  explicit UpstreamTarget(oper::AccessConfig access);
  oper::Credentials credentials_;
  std::unique_ptr<TlsContext> tls_;  // null: plain
};

class Upstream {
 public:
  static base::Result<Upstream> connect(const UpstreamTarget& target, base::MonotonicTime deadline,
                                        const base::Waker* waker);
  Upstream(Upstream&&) noexcept;
  Upstream& operator=(Upstream&&) noexcept;
  ~Upstream();
  base::Status send(std::string_view bytes, base::MonotonicTime deadline, const base::Waker* waker);
  // What is there, at least one byte; "" when the server has closed. kDeadlineExceeded: nothing came.
  base::Result<std::string> receive(base::MonotonicTime deadline, const base::Waker* waker);

 private:
  struct Session;
  Upstream();
  base::Status wait_for(int result, base::MonotonicTime deadline, const base::Waker* waker);
  base::Socket socket_;
  std::unique_ptr<Session> session_;  // null: plain
};

}  // namespace evenkeel::support
