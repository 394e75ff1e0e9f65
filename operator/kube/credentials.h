// Who we are and whom we trust: the server's address, the token, CA and client certificate. Files are read
// again as the cluster rotates them; an empty or unreadable file keeps what was read before. Made by
// in_cluster() or load_kubeconfig(); used by kube/client (token) and the transport (the rest). Thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"

namespace evenkeel::oper {

struct ServerAddress {
  bool tls = true;
  std::string host;
  std::uint16_t port = 443;
  std::string base_path;    // "" or "/k8s/clusters/x"
  std::string server_name;  // tls-server-name; empty: `host`
};

// Text that lies in the configuration itself, or in a file that may change.
struct Material {
  std::string data;
  std::string path;
  bool empty() const { return data.empty() && path.empty(); }
};

struct AccessConfig {
  ServerAddress server;
  Material ca;  // PEM
  Material token;
  Material certificate;  // PEM; with `key`
  Material key;
};

class Credentials {
 public:
  Credentials(AccessConfig config, base::Files& files, base::Clock& clock);

  const ServerAddress& server() const { return config_.server; }
  // "Bearer ...", or empty. From a cache of 60 s with 10 s of leeway.
  std::string authorization();
  // The server answered 401: the next authorization() reads the file again.
  void rejected();
  // Read on each new connection.
  std::string ca_pem();
  std::string certificate_pem();
  std::string key_pem();

 private:
  std::string read(const Material& material, std::string& last);

  const AccessConfig config_;
  base::Files& files_;
  base::Clock& clock_;
  std::mutex mutex_;
  std::string token_, ca_, certificate_, key_;
  std::optional<base::MonotonicTime> token_read_;  // nothing: to be read
};

// Service account of this pod: KUBERNETES_SERVICE_HOST and _PORT (the IP: no DNS is needed) and the mounted
// files.
base::Result<AccessConfig> in_cluster(base::Files& files);
// The current context of a kubeconfig. exec, auth-provider, proxy-url, insecure-skip-tls-verify and the like
// are refused by name with the entry they stand in; no plugin is ever run.
base::Result<AccessConfig> load_kubeconfig(base::Files& files, const std::string& path);
// The same from text; relative paths are below `directory`.
base::Result<AccessConfig> parse_kubeconfig(const std::string& text, const std::string& directory);

}  // namespace evenkeel::oper
