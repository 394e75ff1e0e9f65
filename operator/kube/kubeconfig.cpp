// The kubeconfig half of credentials.h.
#include <array>
#include <cstdlib>

#include "operator/kube/credentials.h"
#include "operator/kube/yaml_reader.h"

namespace evenkeel::oper {
namespace {

using base::Json;
using base::string_at;

base::Error invalid(std::string message) {
  return {base::ErrorCode::kInvalidInput, std::move(message)};
}

// The entry of `list` (clusters, users, contexts) with this name.
base::Result<Json> entry(const Json& config, const std::string& list, const std::string& member,
                         const std::string& name) {
  for (const Json& item : base::child(config, list))
    if (string_at(item, "name") == name) return base::child(item, member);
  return invalid(list + " has no entry '" + name + "'");
}

std::string absolute(const std::string& directory, const std::string& path) {
  return path.empty() || path.front() == '/' ? path : directory + "/" + path;
}

std::string from_base64(const std::string& text, bool& valid) {
  std::array<int, 256> value{};
  value.fill(-1);
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    value[static_cast<unsigned char>(alphabet[i])] = static_cast<int>(i);
  std::string bytes;
  unsigned buffer = 0;
  int bits = 0;
  valid = true;
  for (const char c : text) {
    if (c == '=' || c == '\n' || c == '\r' || c == ' ') continue;
    if (value[static_cast<unsigned char>(c)] < 0) {
      valid = false;
      return "";
    }
    buffer = (buffer << 6 | static_cast<unsigned>(value[static_cast<unsigned char>(c)])) & 0xffffff;
    bits += 6;
    if (bits >= 8) bytes.push_back(static_cast<char>(buffer >> (bits -= 8) & 0xff));
  }
  return bytes;
}

// "x-data" (base64) or "x" (a path).
base::Result<Material> material(const Json& from, const std::string& key, const std::string& directory) {
  Material result;
  const std::string data = string_at(from, key + "-data");
  if (!data.empty()) {
    bool valid = false;
    result.data = from_base64(data, valid);
    if (!valid) return invalid(key + "-data is no base64");
  } else {
    result.path = absolute(directory, string_at(from, key));
  }
  return result;
}

// Settings that this client does not understand change who is talked to and as whom: refused, never ignored.
base::Status refuse_unknown(const Json& from, std::initializer_list<std::string_view> known,
                            const std::string& where) {
  if (!from.is_object()) return invalid(where + " is no map");
  for (const auto& [key, value] : from.items()) {
    bool found = false;
    for (const std::string_view name : known) found = found || key == name;
    if (!found)
      return invalid(
          "'" + key + "' in " + where +
          " is not supported; use a token, tokenFile or client certificate and certificate-authority");
  }
  return {};
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

base::Result<ServerAddress> parse_server(const std::string& url) {
  ServerAddress server;
  std::string rest = url;
  if (rest.rfind("https://", 0) == 0) {
    rest = rest.substr(8);
  } else if (rest.rfind("http://", 0) == 0) {
    server.tls = false;
    rest = rest.substr(7);
  } else {
    return invalid("server '" + url + "' must start with https://");
  }
  const std::size_t slash = rest.find('/');
  if (slash != std::string::npos) {
    server.base_path = rest.substr(slash);
    while (!server.base_path.empty() && server.base_path.back() == '/') server.base_path.pop_back();
    rest = rest.substr(0, slash);
  }
  server.port = server.tls ? 443 : 80;
  const std::size_t bracket = rest.find(']');
  const std::size_t colon = rest.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos) {
    const long port = std::strtol(rest.c_str() + colon + 1, nullptr, 10);
    if (port < 1 || port > 65535) return invalid("server '" + url + "' has no valid port");
    server.port = static_cast<std::uint16_t>(port);
    rest = rest.substr(0, colon);
  }
  if (!rest.empty() && rest.front() == '[') rest = rest.substr(1, rest.size() - 2);
  if (rest.empty() || rest.find('@') != std::string::npos)
    return invalid("server '" + url + "' has no plain host name");
  server.host = rest;
  if (!server.tls && !is_loopback(server.host))
    return invalid("server '" + url + "': without TLS only this machine is talked to; use https://");
  return server;
}

}  // namespace

base::Result<AccessConfig> parse_kubeconfig(const std::string& text, const std::string& directory) {
  EVENKEEL_ASSIGN(const Json config, read_yaml(text));
  if (!config.is_object()) return invalid("is no map");
  const std::string context_name = string_at(config, "current-context");
  if (context_name.empty()) return invalid("current-context is not set");
  EVENKEEL_ASSIGN(const Json context, entry(config, "contexts", "context", context_name));
  const std::string cluster_name = string_at(context, "cluster"), user_name = string_at(context, "user");
  EVENKEEL_ASSIGN(const Json cluster, entry(config, "clusters", "cluster", cluster_name));
  EVENKEEL_TRY(refuse_unknown(
      cluster,
      {"server", "certificate-authority", "certificate-authority-data", "tls-server-name", "extensions"},
      "cluster entry '" + cluster_name + "'"));
  AccessConfig access;
  EVENKEEL_ASSIGN(access.server, parse_server(string_at(cluster, "server")));
  access.server.server_name = string_at(cluster, "tls-server-name");
  EVENKEEL_ASSIGN(access.ca, material(cluster, "certificate-authority", directory));
  if (user_name.empty()) return access;
  EVENKEEL_ASSIGN(const Json user, entry(config, "users", "user", user_name));
  EVENKEEL_TRY(refuse_unknown(user,
                              {"token", "tokenFile", "client-certificate", "client-certificate-data",
                               "client-key", "client-key-data", "extensions"},
                              "user entry '" + user_name + "'"));
  access.token = {string_at(user, "token"), absolute(directory, string_at(user, "tokenFile"))};
  EVENKEEL_ASSIGN(access.certificate, material(user, "client-certificate", directory));
  EVENKEEL_ASSIGN(access.key, material(user, "client-key", directory));
  if (access.certificate.empty() != access.key.empty())
    return invalid("user entry '" + user_name + "' needs both client-certificate and client-key");
  return access;
}

}  // namespace evenkeel::oper
