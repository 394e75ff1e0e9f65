#include "trainer/data/batch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "trainer/data/crew.h"
#include "trainer/data/sample_pipeline.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

// Only 256 inputs are possible in each channel, so the arithmetic is done once, in double.
using ValueTable = std::array<float, 256>;

Result<std::vector<double>> per_channel(const std::vector<double>& values, double fallback, const char* field,
                                        std::size_t channels) {
  if (values.empty()) return std::vector<double>(channels, fallback);
  if (values.size() != 1 && values.size() != channels) {
    const std::string have = std::to_string(channels) + (channels == 1 ? " channel" : " channels");
    return Error{ErrorCode::kInvalidInput,
                 std::string("dataset.") + field + " has " + std::to_string(values.size()) +
                     " values, but the images have " + have + ": give one value, or one for each channel"};
  }
  for (const double value : values) {
    if (!std::isfinite(value)) {
      return Error{ErrorCode::kInvalidInput, std::string("dataset.") + field + " is not a finite number"};
    }
  }
  return values.size() == 1 ? std::vector<double>(channels, values[0]) : values;
}

Result<std::vector<ValueTable>> value_tables(const contract::DatasetSpec& spec, std::size_t channels) {
  EVENKEEL_ASSIGN(const std::vector<double> mean, per_channel(spec.mean, 0.0, "image.mean", channels));
  EVENKEEL_ASSIGN(const std::vector<double> scale, per_channel(spec.stddev, 1.0, "image.std", channels));
  std::vector<ValueTable> tables(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    if (scale[c] <= 0) {
      return Error{ErrorCode::kInvalidInput,
                   "dataset.image.std is " + std::to_string(scale[c]) + ": it must be above 0"};
    }
    for (std::size_t byte = 0; byte < 256; ++byte) {
      tables[c][byte] = static_cast<float>((static_cast<double>(byte) / 255.0 - mean[c]) / scale[c]);
    }
  }
  return tables;
}

Result<AugmentRules> rules_for(const Split& split, const contract::DatasetSpec& spec,
                               const ReaderOptions& options) {
  const auto& shape = split.info().sample_shape;
  const std::vector<contract::Augmentation> none;
  return augment_rules(options.augment ? spec.augment : none, static_cast<int>(shape[0]),
                       static_cast<int>(shape[1]),
                       split.form() == RecordForm::kPixels ? Fit::kStretch : Fit::kCenterCrop, options.seed);
}

// A cache saves nothing where the pixels are in memory as they are wanted.
bool worth_caching(const Split& split) {
  return split.form() == RecordForm::kEncoded || split.stored_shape() != split.info().sample_shape;
}

}  // namespace

struct BatchReader::State {
  const Split* split = nullptr;
  contract::BadRecordAction action = contract::BadRecordAction::kFail;
  std::int64_t max_skipped = 0;
  std::vector<ValueTable> tables;
  std::unique_ptr<SamplePipeline> pipeline;
  std::unique_ptr<Crew> crew;
  mutable std::mutex mutex;
  std::set<std::int64_t> bad_ids;  // skipped so far, here or by another rank
  std::atomic<bool> any_bad{false};

  std::size_t features() const {
    std::size_t product = 1;
    for (const std::int64_t dim : split->info().sample_shape) product *= static_cast<std::size_t>(dim);
    return product;
  }

  bool is_marked(std::int64_t id) const {
    if (!any_bad.load(std::memory_order_relaxed)) return false;
    const std::lock_guard lock(mutex);
    return bad_ids.count(id) != 0;
  }

  // The pixels of a record, as often tried as it takes. A storage that answers for the file but not for the record
  // has lost the record, not the file.
  Result<SampleTaken> make(std::int64_t id, std::uint64_t epoch, std::span<std::uint8_t> bytes) const {
    if (is_marked(id))
      return Error{ErrorCode::kCorruptData, split->where(id) + ": could not be read before, and is not tried again"};
    Result<SampleTaken> taken = pipeline->make(id, epoch, bytes);
    const bool hopeless = split->known_bad().count(id) != 0;
    for (int tries = 1; !taken.ok() && !hopeless && tries < kReadTries; ++tries) {
      // A damaged record is damaged at once; a storage that is busy may need a moment.
      if (taken.error().code != ErrorCode::kCorruptData)
        base::real_clock().sleep_for(std::chrono::milliseconds(20 * tries * tries));
      taken = pipeline->make(id, epoch, bytes);
    }
    if (taken.ok() || taken.error().code == ErrorCode::kCorruptData || !split->storage_answers(id)) return taken;
    return Error{ErrorCode::kCorruptData, taken.error().message + ": tried " + std::to_string(kReadTries) +
                                              " times; the rest of the file can be read"};
  }

  // One record into its place; the values that the caller must judge in the order of positions.
  Result<SampleTaken> fill(std::int64_t id, std::uint64_t epoch, float* out) const {
    thread_local std::vector<std::uint8_t> bytes;
    const std::size_t count = features();
    bytes.resize(count);
    Result<SampleTaken> taken = make(id, epoch, bytes);
    if (!taken.ok()) {
      std::fill_n(out, count, 0.0F);
      return taken;
    }
    const std::size_t channels = tables.size();
    if (channels == 1) {
      for (std::size_t i = 0; i < count; ++i) out[i] = tables[0][bytes[i]];
      return taken;
    }
    for (std::size_t i = 0; i < count; i += channels) {
      for (std::size_t c = 0; c < channels; ++c) out[i + c] = tables[c][bytes[i + c]];
    }
    return taken;
  }

  // Whether a record may be left out: the policy, and the limit over the life of the reader.
  Status skip(std::int64_t id, const Error& error) {
    if (error.code != ErrorCode::kCorruptData || action == contract::BadRecordAction::kFail) return error;
    const std::lock_guard lock(mutex);
    const bool is_new = bad_ids.insert(id).second;
    any_bad = true;
    const auto count = static_cast<std::int64_t>(bad_ids.size());
    if (count <= max_skipped) {
      if (is_new)
        base::log_warning("a record is skipped from now on",
                          {{"reason", error.message}, {"skipped", count}, {"maxSkipped", max_skipped}});
      return {};
    }
    return Error{ErrorCode::kCorruptData, error.message + ": " + std::to_string(count) +
                                              " bad records, more than dataset.onBadRecord.maxSkipped = " +
                                              std::to_string(max_skipped)};
  }
};

BatchReader::BatchReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
BatchReader::BatchReader(BatchReader&&) noexcept = default;
BatchReader& BatchReader::operator=(BatchReader&&) noexcept = default;
BatchReader::~BatchReader() = default;

Result<BatchReader> BatchReader::make(const Split& split, const contract::DatasetSpec& spec,
                                      const ReaderOptions& options) {
  auto state = std::make_unique<State>();
  state->split = &split;
  state->action = spec.bad_record_action;
  state->max_skipped = spec.max_skipped;
  EVENKEEL_ASSIGN(state->tables, value_tables(spec, static_cast<std::size_t>(split.info().sample_shape[2])));
  EVENKEEL_ASSIGN(const AugmentRules rules, rules_for(split, spec, options));
  std::unique_ptr<RecordCache> cache;
  if (worth_caching(split)) {
    cache =
        make_record_cache({spec.cache, options.cache_limit_bytes, options.cache_folder, split.info().name});
  }
  state->pipeline = std::make_unique<SamplePipeline>(split, rules, std::move(cache));
  state->crew = Crew::start(options.threads);
  return BatchReader(std::move(state));
}

Result<BatchTaken> BatchReader::read(const EpochOrder& order, std::uint64_t epoch, std::int64_t begin,
                                     std::int64_t end, HostBatch& batch) const {
  return read(order, epoch, PositionRanges{{begin, end}}, batch);
}

Result<BatchTaken> BatchReader::read(const EpochOrder& order, std::uint64_t epoch, const PositionRanges& ranges,
                                     HostBatch& batch) const {
  batch.clear();
  return append(order, epoch, ranges, batch);
}

Result<BatchTaken> BatchReader::append(const EpochOrder& order, std::uint64_t epoch, const PositionRanges& ranges,
                                       HostBatch& batch) const {
  const std::size_t features = state_->features();
  std::vector<std::uint64_t> positions;
  for (const PositionRange& range : ranges) {
    assert(0 <= range.begin && range.begin <= range.end);
    assert(order.endless() || range.end <= static_cast<std::int64_t>(order.samples()));
    for (std::int64_t at = range.begin; at < range.end; ++at) positions.push_back(static_cast<std::uint64_t>(at));
  }
  const std::size_t count = positions.size();
  const std::size_t first = batch.labels.size();
  batch.features.resize((first + count) * features);
  batch.labels.resize(first + count);
  batch.ids.resize(first + count);
  std::vector<std::optional<Result<SampleTaken>>> results(count);
  state_->crew->run(count, [&](std::size_t i) {
    const auto id = static_cast<std::int64_t>(order.id_at(positions[i]));
    batch.ids[first + i] = id;
    results[i].emplace(state_->fill(id, epoch, batch.features.data() + (first + i) * features));
  });
  // In the order of positions, so that what is reported does not depend on threads.
  BatchTaken taken;
  for (std::size_t i = 0; i < count; ++i) {
    const Result<SampleTaken>& result = *results[i];
    const std::int64_t id = batch.ids[first + i];
    const Status status = result.ok() ? Status{} : state_->skip(id, result.error());
    if (!status.ok()) {
      batch.features.resize(first * features);
      batch.labels.resize(first);
      batch.ids.resize(first);
      return status.error();
    }
    batch.labels[first + i] = result.ok() ? result->label : kSkippedLabel;
    ++(result.ok() ? taken.consumed : taken.skipped);
    if (!result.ok()) taken.skipped_ids.push_back(id);
    taken.id_hash += base::mix64(static_cast<std::uint64_t>(id));
    taken.bytes_read += result.ok() ? result->stored_bytes : 0;
  }
  return taken;
}

const Split& BatchReader::split() const {
  return *state_->split;
}

void BatchReader::skip_from_now_on(const std::vector<std::int64_t>& ids) const {
  const std::lock_guard lock(state_->mutex);
  state_->bad_ids.insert(ids.begin(), ids.end());
  state_->any_bad = !state_->bad_ids.empty();
}

std::vector<std::int64_t> BatchReader::skipped_ids() const {
  const std::lock_guard lock(state_->mutex);
  return {state_->bad_ids.begin(), state_->bad_ids.end()};
}

std::int64_t BatchReader::distinct_skipped() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<std::int64_t>(state_->bad_ids.size());
}

std::uint64_t BatchReader::cached_bytes() const {
  const RecordCache* cache = state_->pipeline->cache();
  return cache == nullptr ? 0 : cache->held_bytes();
}

}  // namespace evenkeel::trainer
