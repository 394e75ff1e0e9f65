#include "trainer/data/sample_pipeline.h"

#include <cstring>
#include <string>

#include "trainer/data/image_codec.h"
#include "trainer/data/resize.h"

namespace evenkeel::trainer {
namespace {

using base::Result;

// Pictures in between, kept by each thread: fresh memory for each record costs more than the resizing.
struct Scratch {
  Image whole;
  Image fitted;
};

Scratch& scratch() {
  thread_local Scratch mine;
  return mine;
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void fill(Image& image, std::int64_t height, std::int64_t width, std::int64_t channels,
          std::span<const std::uint8_t> bytes) {
  image.reset(static_cast<int>(height), static_cast<int>(width), static_cast<int>(channels));
  std::memcpy(image.pixels.data(), bytes.data(), image.pixels.size());
}

void resize_into(const Image& source, const Box& box, const AugmentRules& rules, Image& target) {
  const bool whole = box == Box{0, 0, static_cast<double>(source.height), static_cast<double>(source.width)};
  if (whole && source.height == rules.height && source.width == rules.width) {
    target = source;
  } else {
    resize_box(source, box, rules.height, rules.width, target);
  }
}

}  // namespace

// Takes the plan's box of the record's picture, decoded as small as the box allows.
Result<AugmentPlan> SamplePipeline::fit(std::int64_t id, std::uint64_t epoch,
                                        std::span<const std::uint8_t> bytes, Image& fitted) const {
  if (split_->form() == RecordForm::kPixels) {
    Image& whole = scratch().whole;
    const auto& shape = split_->stored_shape();
    fill(whole, shape[0], shape[1], shape[2], bytes);
    const AugmentPlan plan = plan_sample(rules_, whole.height, whole.width, epoch, id);
    resize_into(whole, plan.box, rules_, fitted);
    return plan;
  }
  EVENKEEL_ASSIGN(const ImageHeader header, read_image_header(bytes));
  const AugmentPlan plan = plan_sample(rules_, header.height, header.width, epoch, id);
  const bool jpeg = header.format == ImageFormat::kJpeg;
  const int shrink = jpeg ? decode_shrink(plan.box, rules_.height, rules_.width) : 1;
  EVENKEEL_ASSIGN(const Image image, decode_image(bytes, header, shrink));
  // A shrunk pixel covers `shrink` pixels exactly, but for the last of a row, which may hang over.
  const double scale = 1.0 / shrink;
  const Box box{plan.box.y * scale, plan.box.x * scale, plan.box.height * scale, plan.box.width * scale};
  resize_into(image, box, rules_, fitted);
  return plan;
}

Result<SampleTaken> SamplePipeline::make(std::int64_t id, std::uint64_t epoch,
                                         std::span<std::uint8_t> out) const {
  Image& fitted = scratch().fitted;
  const auto kept = cache_ ? cache_->find(id) : std::nullopt;
  if (kept && !rules_.resized_crop) {
    // At its final size already: what is left of the plan does not depend on the picture.
    fill(fitted, rules_.height, rules_.width, split_->info().sample_shape[2], bytes_of(kept->bytes));
    move_and_mirror(fitted, plan_sample(rules_, rules_.height, rules_.width, epoch, id), out);
    return SampleTaken{kept->label, kept->stored_bytes};
  }
  StoredRecord record;
  if (!kept) {
    EVENKEEL_ASSIGN(record, split_->read(id));
  }
  const auto bytes = kept ? bytes_of(kept->bytes) : record.bytes();
  const Result<AugmentPlan> plan = fit(id, epoch, bytes, fitted);
  if (!plan.ok()) return base::with_context(split_->where(id), plan.error());
  move_and_mirror(fitted, *plan, out);
  if (kept) return SampleTaken{kept->label, kept->stored_bytes};
  if (cache_) {
    cache_->keep(id, record.label, record.stored_bytes, text_of(rules_.resized_crop ? bytes : fitted.pixels));
  }
  return SampleTaken{record.label, record.stored_bytes};
}

}  // namespace evenkeel::trainer
