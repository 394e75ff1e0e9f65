#include "trainer/data/split.h"

#include "trainer/data/image_codec.h"

namespace evenkeel::trainer {

base::Error Split::corrupt(std::int64_t id, const std::string& cause) const {
  return base::Error{base::ErrorCode::kCorruptData, where(id) + ": " + cause};
}

// Of what is in memory nothing can fail.
bool Split::storage_answers(std::int64_t) const {
  return true;
}

base::Result<DecodedRecord> Split::decode(std::int64_t id) const {
  EVENKEEL_ASSIGN(const StoredRecord record, read(id));
  DecodedRecord decoded;
  decoded.label = record.label;
  if (form_ == RecordForm::kPixels) {
    decoded.image.reset(static_cast<int>(stored_shape_[0]), static_cast<int>(stored_shape_[1]),
                        static_cast<int>(stored_shape_[2]));
    const auto bytes = record.bytes();
    decoded.image.pixels.assign(bytes.begin(), bytes.end());
    return decoded;
  }
  const base::Result<ImageHeader> header = read_image_header(record.bytes());
  if (!header.ok()) return corrupt(id, header.error().message);
  base::Result<Image> image = decode_image(record.bytes(), *header);
  if (!image.ok()) return corrupt(id, image.error().message);
  decoded.image = std::move(image).value();
  return decoded;
}

}  // namespace evenkeel::trainer
