// The pages of a pod with several ranks: /metrics is that of all ranks, /readyz is "ok" when all are, /healthz when
// the launcher is. Made by the launcher. Each request asks the ranks, which serve on the loopback interface.
#pragma once

#include <memory>
#include <vector>

#include "base/http.h"
#include "base/result.h"
#include "trainer/config/settings.h"
#include "trainer/launch/rank_environment.h"

namespace evenkeel::trainer {

base::Result<std::unique_ptr<base::HttpServer>> start_pod_server(const Settings& settings, std::vector<RankPlace> ranks);

}  // namespace evenkeel::trainer
