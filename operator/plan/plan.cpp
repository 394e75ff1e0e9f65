#include "operator/plan/plan.h"

#include "contract/labels.h"

namespace evenkeel::oper {
namespace {

using contract::Role;

contract::TrainerConfig plan_config(const contract::TrainingJob& job, std::int64_t attempt,
                                    std::int64_t incarnation) {
  contract::TrainerConfig config;
  config.job_name = job.meta.name;
  config.job_namespace = job.meta.name_space;
  config.job_uid = job.meta.uid;
  config.attempt = static_cast<std::uint32_t>(attempt);
  config.coordinator_incarnation = static_cast<std::uint32_t>(incarnation);
  config.coordinator_host = contract::dns_name(job.meta.name, job.meta.name_space, Role::kCoordinator, 0);
  config.coordinator_port = contract::kControlPort;
  config.ranks = job.spec.ranks();
  config.spec_json = job.spec_json;
  config.spec = job.spec;
  return config;
}

}  // namespace

PodPlan plan_pod(const contract::ObjectMeta& meta, Role role, int rank, std::int64_t incarnation) {
  PodPlan pod;
  pod.role = role;
  pod.rank = rank;
  pod.incarnation = incarnation;
  pod.name = contract::pod_name(meta.name, role, rank, incarnation);
  pod.host_name = contract::host_name(meta.name, role, rank);
  pod.address = contract::dns_name(meta.name, meta.name_space, role, rank);
  return pod;
}

JobPlan make_plan(const contract::TrainingJob& job, std::int64_t attempt, std::int64_t incarnation) {
  std::vector<PodPlan> pods{plan_pod(job.meta, Role::kCoordinator, 0, incarnation)};
  for (int rank = 0; rank < job.spec.workers.replicas; ++rank) {
    pods.push_back(plan_pod(job.meta, Role::kWorker, rank, incarnation));
  }
  return make_plan(job, attempt, std::move(pods));
}

JobPlan make_plan(const contract::TrainingJob& job, std::int64_t attempt, std::vector<PodPlan> pods) {
  JobPlan plan;
  plan.attempt = attempt;
  plan.incarnation = pods.front().incarnation;
  plan.workers = static_cast<int>(pods.size()) - 1;
  plan.ranks = plan.workers * job.spec.workers.devices_per_replica;
  plan.ranks_per_pod = job.spec.workers.devices_per_replica;
  plan.service = contract::service_name(job.meta.name);
  plan.config_map = contract::config_map_name(job.meta.name, attempt);
  if (job.spec.workers.scalable()) plan.wanted_map = contract::wanted_map_name(job.meta.name, attempt);
  plan.secret = contract::secret_name(job.meta.name, job.meta.uid);
  plan.config = plan_config(job, attempt, plan.incarnation);
  plan.pods = std::move(pods);
  return plan;
}

std::vector<PodPlan> workers_of(const JobPlan& plan) {
  std::vector<PodPlan> workers;
  for (const PodPlan& pod : plan.pods) {
    if (pod.role == Role::kWorker) workers.push_back(pod);
  }
  return workers;
}

std::string to_text(const JobPlan& plan) {
  std::string text = "attempt " + std::to_string(plan.attempt) + ", incarnation " +
                     std::to_string(plan.incarnation) + ", " + std::to_string(plan.ranks) +
                     " ranks, service " + plan.service + ", configuration " + plan.config_map + ", key " +
                     plan.secret + ", coordinator " + plan.config.coordinator_host + ":" +
                     std::to_string(plan.config.coordinator_port) + "\n";
  for (const PodPlan& pod : plan.pods) {
    text += std::string("  ") + contract::role_name(pod.role) + " " + std::to_string(pod.rank) + ": pod " +
            pod.name + " at " + pod.address;
    const int first = pod.rank * plan.ranks_per_pod;
    if (pod.role == Role::kWorker && plan.ranks_per_pod > 1)
      text += ", ranks " + std::to_string(first) + " to " + std::to_string(first + plan.ranks_per_pod - 1);
    text += "\n";
  }
  return text;
}

}  // namespace evenkeel::oper
