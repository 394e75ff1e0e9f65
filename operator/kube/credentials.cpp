#include "operator/kube/credentials.h"

#include <algorithm>
#include <cstdlib>

#include "base/log.h"

namespace evenkeel::oper {
namespace {

constexpr std::size_t kMaxFileBytes = 1u << 20;
// Kubelets replace a token when 80 % of its life is over, so a minute-old one is still good; 10 s of leeway.
constexpr base::Duration kTokenAge = std::chrono::seconds(50);
constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount/";

std::string trimmed(std::string text) {
  const auto space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && space(text.back())) text.pop_back();
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), space));
  return text;
}

}  // namespace

Credentials::Credentials(AccessConfig config, base::Files& files, base::Clock& clock)
    : config_(std::move(config)), files_(files), clock_(clock) {}

// REQUIRES: mutex_ held. `last` is what is used while the file is empty or unreadable, as it is for a moment
// in every rotation.
std::string Credentials::read(const Material& material, std::string& last) {
  if (material.path.empty()) return material.data;
  auto text = files_.read(material.path, kMaxFileBytes);
  if (!text.ok()) {
    base::log_warning("credential file is not readable, the last content is kept",
                      {{"error", text.error().message}});
  } else if (trimmed(*text).empty()) {
    base::log_warning("credential file is empty, the last content is kept", {{"path", material.path}});
  } else {
    last = std::move(*text);
  }
  return last;
}

std::string Credentials::authorization() {
  const std::lock_guard lock(mutex_);
  if (config_.token.empty()) return "";
  if (token_.empty() || !token_read_ || clock_.now() - *token_read_ >= kTokenAge) {
    token_ = trimmed(read(config_.token, token_));
    token_read_ = clock_.now();
  }
  return token_.empty() ? "" : "Bearer " + token_;
}

void Credentials::rejected() {
  const std::lock_guard lock(mutex_);
  token_read_.reset();  // not "long ago": a machine may have been up for less
}

std::string Credentials::ca_pem() {
  const std::lock_guard lock(mutex_);
  return read(config_.ca, ca_);
}

std::string Credentials::certificate_pem() {
  const std::lock_guard lock(mutex_);
  return read(config_.certificate, certificate_);
}

std::string Credentials::key_pem() {
  const std::lock_guard lock(mutex_);
  return read(config_.key, key_);
}

base::Result<AccessConfig> in_cluster(base::Files& files) {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (!host || !port || !*host || !*port) {
    return base::Error{
        base::ErrorCode::kInvalidInput,
        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod of a cluster; "
        "give --kubeconfig FILE"};
  }
  AccessConfig config;
  config.server.host = host;
  const long number = std::strtol(port, nullptr, 10);
  if (number < 1 || number > 65535) {
    return base::Error{base::ErrorCode::kInvalidInput,
                       "KUBERNETES_SERVICE_PORT is '" + std::string(port) + "', no port"};
  }
  config.server.port = static_cast<std::uint16_t>(number);
  config.token.path = std::string(kServiceAccount) + "token";
  config.ca.path = std::string(kServiceAccount) + "ca.crt";
  for (const std::string& path : {config.token.path, config.ca.path}) {
    auto text = files.read(path, kMaxFileBytes);
    if (!text.ok()) return base::with_context("service account of this pod", std::move(text).error());
  }
  return config;
}

base::Result<AccessConfig> load_kubeconfig(base::Files& files, const std::string& path) {
  auto text = files.read(path, kMaxFileBytes);
  if (!text.ok()) return base::with_context("kubeconfig", std::move(text).error());
  const std::size_t slash = path.rfind('/');
  auto config = parse_kubeconfig(
      *text, slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1)));
  if (!config.ok()) return base::with_context("kubeconfig " + path, std::move(config).error());
  return config;
}

}  // namespace evenkeel::oper
