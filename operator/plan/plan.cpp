#include "operator/plan/plan.h"

#include "contract/labels.h"

namespace evenkeel::oper {
namespace {

using contract::Role;

PodPlan plan_pod(const contract::ObjectMeta& meta, Role role, int rank, std::int64_t incarnation) {
  PodPlan pod;
  pod.role = role;
  pod.rank = rank;
  pod.name = contract::pod_name(meta.name, role, rank, incarnation);
  pod.host_name = contract::host_name(meta.name, role, rank);
  pod.address = contract::dns_name(meta.name, meta.name_space, role, rank);
  return pod;
}

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

JobPlan make_plan(const contract::TrainingJob& job, std::int64_t attempt, std::int64_t incarnation) {
  JobPlan plan;
  plan.attempt = attempt;
  plan.incarnation = incarnation;
  plan.ranks = job.spec.ranks();
  plan.ranks_per_pod = job.spec.workers.devices_per_replica;
  plan.service = contract::service_name(job.meta.name);
  plan.config_map = contract::config_map_name(job.meta.name, attempt);
  plan.secret = contract::secret_name(job.meta.name, job.meta.uid);
  plan.config = plan_config(job, attempt, incarnation);
  plan.pods.push_back(plan_pod(job.meta, Role::kCoordinator, 0, incarnation));
  for (int rank = 0; rank < job.spec.workers.replicas; ++rank) {
    plan.pods.push_back(plan_pod(job.meta, Role::kWorker, rank, incarnation));
  }
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
            pod.name + " at " + pod.address + "\n";
  }
  return text;
}

}  // namespace evenkeel::oper
