#include "operator/render/resources.h"

#include <algorithm>

#include "contract/job/quantity.h"

namespace evenkeel::oper {
namespace {

constexpr char kGpu[] = "nvidia.com/gpu";

void lay_over(Json& into, const Json& from, const char* member) {
  for (const auto& [name, quantity] : base::child(from, member).items()) into[member][name] = quantity;
}

bool exceeds(const Json& request, const Json& limit) {
  const auto asked = contract::parse_quantity(request);
  const auto allowed = contract::parse_quantity(limit);
  return asked.ok() && allowed.ok() && *asked > *allowed;
}

void lower_requests(Json& resources) {
  if (!resources.contains("requests") || !resources.contains("limits")) return;
  for (auto& [name, request] : resources["requests"].items()) {
    const auto limit = resources["limits"].find(name);
    if (limit != resources["limits"].end() && exceeds(request, *limit)) request = *limit;
  }
}

}  // namespace

Json merge_resources(const Json& group, const Json& over) {
  Json merged = Json::object();
  for (const char* member : {"limits", "requests"}) {
    lay_over(merged, group, member);
    lay_over(merged, over, member);
  }
  lower_requests(merged);
  return merged;
}

Json worker_resources(const contract::WorkersSpec& workers, int rank) {
  Json resources = merge_resources(workers.shape.resources, Json::object());
  for (const contract::WorkerOverride& over : workers.overrides) {
    const bool meant = std::find(over.replicas.begin(), over.replicas.end(), rank) != over.replicas.end();
    if (meant) resources = merge_resources(resources, over.shape.resources);
  }
  if (workers.device == contract::Device::kCuda) resources["limits"][kGpu] = workers.devices_per_replica;
  return resources;
}

}  // namespace evenkeel::oper
