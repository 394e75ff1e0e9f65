#include "operator/render/metadata.h"

#include "contract/labels.h"

namespace evenkeel::oper {

Json child_metadata(const contract::ObjectMeta& job, const std::string& name, std::int64_t attempt) {
  Json metadata = {{"name", name}, {"namespace", job.name_space}};
  Json& labels = metadata["labels"];
  labels[contract::kLabelJobName] = job.name;
  labels[contract::kLabelJobUid] = job.uid;
  if (attempt > 0) labels[contract::kLabelAttempt] = std::to_string(attempt);
  metadata["ownerReferences"] = Json::array({{{"apiVersion", contract::kApiVersion},
                                              {"kind", contract::kKind},
                                              {"name", job.name},
                                              {"uid", job.uid},
                                              {"controller", true},
                                              {"blockOwnerDeletion", true}}});
  return metadata;
}

bool is_controlled_by(const Json& object, const std::string& job_uid) {
  const Json& owners = base::at_path(object, {"metadata", "ownerReferences"});
  if (!owners.is_array() || job_uid.empty()) return false;
  for (const Json& owner : owners) {
    if (base::bool_at(owner, "controller") && base::string_at(owner, "uid") == job_uid) return true;
  }
  return false;
}

std::string worker_selector(const std::string& job_uid) {
  return std::string(contract::kLabelJobUid) + "=" + job_uid + "," + contract::kLabelRole + "=" +
         contract::role_name(contract::Role::kWorker);
}

}  // namespace evenkeel::oper
