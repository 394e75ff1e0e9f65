// An API server in memory, enough for this operator's calls: names, UIDs, versions, preconditions, merge
// patches. Fails on demand before or after a write took effect. For tests, behind FakeTransport; one thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "operator/kube/object_store.h"
#include "operator/kube/transport_fake.h"

namespace evenkeel::oper {

class FakeApiServer {
 public:
  enum class Failure { kNone, kBefore, kCommittedNoReply };

  explicit FakeApiServer(FakeTransport& transport) {
    transport.on_send = [this](const HttpCall& call) { return handle(call); };
  }

  // The n-th write from now on, counted from 1, fails in this way.
  void fail_write(int n, Failure failure) {
    fail_in_ = n;
    failure_ = failure;
  }
  // Answers instead of the server where it returns something; asked first.
  std::function<std::optional<HttpReply>(const HttpCall&)> intercept;

  int writes() const { return writes_; }
  const std::vector<std::string>& log() const { return log_; }  // "POST pods t-worker-0-1 201"

  // Objects as the server holds them, by "plural/namespace/name".
  std::map<std::string, Json> objects;

  Json put(const std::string& plural, Json object) {
    Json& metadata = object["metadata"];
    if (!metadata.contains("uid")) metadata["uid"] = "uid-" + std::to_string(++last_uid_);
    if (!metadata.contains("creationTimestamp")) metadata["creationTimestamp"] = "2026-01-01T00:00:00Z";
    metadata["resourceVersion"] = std::to_string(++version_);
    return objects[plural + "/" + metadata["namespace"].get<std::string>() + "/" +
                   metadata["name"].get<std::string>()] = object;
  }
  // What the watches would have told by now.
  void sync(const std::string& plural, ObjectStore& store) const {
    std::set<std::string> uids;
    for (const auto& [key, object] : objects) {
      if (key.rfind(plural + "/", 0) != 0) continue;
      uids.insert(object["metadata"]["uid"].get<std::string>());
      store.put(object);
    }
    store.keep_only("", uids);
    store.mark_synced("");
  }
  std::vector<std::string> names(const std::string& plural) const {
    std::vector<std::string> all;
    for (const auto& [key, object] : objects)
      if (key.rfind(plural + "/", 0) == 0) all.push_back(key.substr(key.rfind('/') + 1));
    return all;
  }

 private:
  struct Target {
    std::string plural, name_space, name, subresource;
  };

  static Target parse(const std::string& target) {
    std::vector<std::string> parts;
    std::string part;
    for (const char c : target.substr(0, target.find('?')) + "/") {
      if (c != '/')
        part += c;
      else if (!part.empty())
        parts.push_back(std::exchange(part, ""));
    }
    Target result;
    std::size_t i = parts.empty() || parts[0] != "apis" ? 2 : 3;
    if (i + 1 < parts.size() && parts[i] == "namespaces") {
      result.name_space = parts[i + 1];
      i += 2;
    }
    if (i < parts.size()) result.plural = parts[i];
    if (i + 1 < parts.size()) result.name = parts[i + 1];
    if (i + 2 < parts.size()) result.subresource = parts[i + 2];
    return result;
  }

  static HttpReply status(int code, const std::string& reason) {
    return answered(code, base::dump_json(Json{
                              {"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", reason}}));
  }
  static HttpReply object_reply(int code, const Json& object) {
    return answered(code, base::dump_json(object));
  }

  HttpReply handle(const HttpCall& call) {
    if (intercept)
      if (auto reply = intercept(call)) return *reply;
    if (call.method == "GET") return read(call);
    ++writes_;
    const Failure failure = fail_in_ > 0 && --fail_in_ == 0 ? failure_ : Failure::kNone;
    if (failure == Failure::kBefore) return failed_call(Outcome::kUnknown);
    const HttpReply reply = write(call);
    const Target target = parse(call.target);
    log_.push_back(call.method + " " + target.plural + " " +
                   (target.name.empty()
                        ? base::string_at(base::child(*base::parse_json(call.body), "metadata"), "name")
                        : target.name) +
                   " " + std::to_string(reply.status));
    return failure == Failure::kCommittedNoReply ? failed_call(Outcome::kUnknown) : reply;
  }

  HttpReply read(const HttpCall& call) {
    const Target target = parse(call.target);
    if (!target.name.empty()) {
      const auto found = objects.find(target.plural + "/" + target.name_space + "/" + target.name);
      return found == objects.end() ? status(404, "NotFound") : object_reply(200, found->second);
    }
    Json items = Json::array();
    for (const auto& [key, object] : objects)
      if (key.rfind(target.plural + "/" + target.name_space + (target.name_space.empty() ? "" : "/"), 0) == 0)
        items.push_back(object);
    return object_reply(
        200, Json{{"metadata", {{"resourceVersion", std::to_string(version_)}}}, {"items", items}});
  }

  HttpReply write(const HttpCall& call) {
    const Target target = parse(call.target);
    Json body = *base::parse_json(call.body);
    if (call.method == "POST") {
      body["metadata"]["namespace"] = target.name_space;
      if (objects.contains(target.plural + "/" + target.name_space + "/" +
                           base::string_at(body["metadata"], "name")))
        return status(409, "AlreadyExists");
      return object_reply(201, put(target.plural, body));
    }
    const auto found = objects.find(target.plural + "/" + target.name_space + "/" + target.name);
    if (found == objects.end()) return status(404, "NotFound");
    const Json& metadata = found->second["metadata"];
    if (call.method == "DELETE") {
      if (base::child(body, "preconditions").value("uid", metadata["uid"].get<std::string>()) !=
          metadata["uid"])
        return status(409, "Conflict");
      objects.erase(found);
      ++version_;
      return status(200, "Success");
    }
    const Json& wanted = base::child(body, "metadata");
    if (wanted.contains("resourceVersion") && wanted["resourceVersion"] != metadata["resourceVersion"])
      return status(409, "Conflict");
    if (wanted.contains("uid") && wanted["uid"] != metadata["uid"]) return status(409, "Conflict");
    for (const char* member : {"uid", "resourceVersion"}) {
      if (body.contains("metadata")) body["metadata"].erase(member);
    }
    Json object = found->second;
    object.merge_patch(body);
    return object_reply(200, put(target.plural, object));
  }

  int version_ = 100;
  int last_uid_ = 0;
  int writes_ = 0;
  int fail_in_ = 0;
  Failure failure_ = Failure::kNone;
  std::vector<std::string> log_;
};

}  // namespace evenkeel::oper
