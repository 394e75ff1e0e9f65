// How the samples come to the ranks, in words and as facts for the diagnosis; and what is refused of it.
#include <algorithm>

#include "base/log.h"
#include "trainer/coordinator/coordination.h"
#include "trainer/coordinator/coordination_internal.h"

namespace evenkeel::trainer {
namespace {

using contract::ShardingPolicy;

std::int64_t files_with_samples(const contract::Join& join) {
  return std::count_if(join.file_samples.begin(), join.file_samples.end(), [](std::int64_t n) { return n > 0; });
}

std::string counted(std::int64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace

// The ranks have looked at the files: they send their sizes where files are dealt.
Dealing dealing_of(ShardingPolicy policy, const contract::Join& join) {
  if (policy == ShardingPolicy::kOff) return Dealing::kPasses;
  return join.file_samples.empty() ? Dealing::kRecord : Dealing::kFile;
}

// Which policy is in force, and why.
std::string Coordination::sharding_text() const {
  if (!ledger_ || !reference_) return "";
  const contract::DatasetSpec& dataset = config_.spec.dataset;
  const bool automatic = dataset.sharding == ShardingPolicy::kAuto;
  const LedgerConfig& ledger = ledger_->config();
  if (ledger.dealing == Dealing::kPasses) {
    return "Off: every rank sees everything, so an epoch is " + std::to_string(ledger.passes) + " times the " +
           counted(ledger.train_samples, "sample") + " of the training split, in an order of its own for each rank";
  }
  if (ledger.dealing == Dealing::kRecord) {
    if (automatic) return "Record: every record of format " + dataset.format + " can be read by itself (policy Auto)";
    if (dataset.sharding == ShardingPolicy::kFile)
      return "Record: policy File is asked for, but every record is a file of its own, or there are too many files";
    return "Record: as asked for";
  }
  const std::int64_t files = files_with_samples(*reference_);
  const auto ranks = static_cast<std::int64_t>(ledger_->group().size());
  return std::string("File: ") +
         (automatic ? "files are compressed, so a record can only be reached through those before it (policy Auto)"
                    : "as asked for") +
         "; " + counted(files, "file") + " for " + counted(ranks, "rank") +
         (files < ranks ? ", fewer files than ranks: files are cut, and several ranks read the same one" : "");
}

// Whoever asks for whole files and has too few of them gets less than the ranks that are paid for: said before the
// first step. A job that has begun goes on, with files cut; so does one whose policy is not the user's.
std::string Coordination::sharding_refusal() const {
  if (config_.spec.dataset.sharding != ShardingPolicy::kFile || ledger_->config().dealing != Dealing::kFile ||
      ledger_->committed().step > 0)
    return "";
  const std::int64_t files = files_with_samples(*reference_);
  if (files >= wanted_) return "";
  return "dataset.sharding.policy File deals whole files, but the training split has " + counted(files, "file") +
         " and the job " + counted(wanted_, "rank") +
         ": use policy Auto or Record, more files, or fewer ranks";
}

void Coordination::tell_sharding() const {
  const std::string text = sharding_text();
  if (ledger_->config().dealing == Dealing::kPasses && ledger_->config().passes > 1) {
    base::log_warning("sharding " + text + ". Use policy Auto unless that is what you want");
  } else {
    base::log_info("sharding " + text);
  }
}

// What an epoch reads, where that is known by plan and not by a fault.
void Coordination::add_sharding_facts(EpochFacts& facts) const {
  if (!ledger_ || ledger_->config().dealing != Dealing::kPasses) return;
  facts.unique_ids = ledger_->config().train_samples;
  facts.ids_seen = ledger_->epoch_samples(ledger_->committed().epoch);
}

}  // namespace evenkeel::trainer
