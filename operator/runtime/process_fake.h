// One operator process without threads: caches, memory and a controller over an API server in memory
// (operator/kube/api_server_fake.h). Everything in it is lost when it is destroyed, as when it is killed. Tests only.
#pragma once

#include <string>
#include <vector>

#include "base/clock_fake.h"
#include "operator/kube/api_server_fake.h"
#include "operator/runtime/controller.h"

namespace evenkeel::oper {

class NoTokens : public TokenSource {
 public:
  std::string authorization() override { return ""; }
  void rejected() override {}
};

struct Process {
  Process(FakeTransport& transport, TokenSource& tokens, base::FakeClock& clock)
      : client(transport, tokens, clock),
        poller(
            clock,
            [](const ReportTarget&) -> base::Result<base::HttpResponse> {
              return base::Error{base::ErrorCode::kUnavailable, "no coordinator"};
            },
            [](const std::string&) {}) {
    for (ObjectStore* store : {&stores.jobs, &stores.pods, &stores.services, &stores.config_maps})
      store->set_versions_comparable(true);
    stores.jobs.set_handler([this](const StoreChange& change) {
      woken = true;
      expectations.saw_job(change.uid, [&](const std::string& expected) {
        return change.resource_version == expected ||
               stores.jobs.compare_versions(change.resource_version, expected) > 0;
      });
    });
    for (ObjectStore* store : {&stores.pods, &stores.services, &stores.config_maps})
      store->set_handler([this](const StoreChange& change) {
        woken = true;
        expectations.saw(change.uid, change.deleting);
      });
  }
  ApiClient client;
  Stores stores;
  Expectations expectations;
  ReportPoller poller;
  bool woken = false;  // a watch has brought something since somebody looked
  std::vector<std::string> finished;
  Actor actor{client, stores, expectations, nullptr};
  Controller controller{
      {client, stores, expectations, actor, poller,
       [this](const std::string&, const std::string& result) { finished.push_back(result); }},
      ReconcileOptions{"trainer:test", Json::object()}};
};

}  // namespace evenkeel::oper
