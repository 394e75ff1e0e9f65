#include "trainer/data/indexed_split.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;

// "train.tfrecord-00002-of-00004": prefix "train.tfrecord", number 2, 5 digits, of 4, suffix "".
struct SetMember {
  std::string prefix;
  std::string suffix;
  std::string number;
  std::string total;
};

std::string digits_at(const std::string& text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  return text.substr(at, end - at);
}

std::optional<SetMember> set_member(const std::string& name) {
  const std::size_t of = name.rfind("-of-");
  if (of == std::string::npos) return std::nullopt;
  const std::size_t dash = name.rfind('-', of - (of == 0 ? 0 : 1));
  if (of == 0 || dash == std::string::npos) return std::nullopt;
  SetMember member;
  member.prefix = name.substr(0, dash);
  member.number = digits_at(name, dash + 1);
  member.total = digits_at(name, of + 4);
  member.suffix = name.substr(of + 4 + member.total.size());
  const bool whole = dash + 1 + member.number.size() == of;
  if (!whole || member.number.empty() || member.total.empty() || member.total.size() > 9) return std::nullopt;
  return member;
}

std::string padded(std::size_t number, std::size_t digits) {
  std::string text = std::to_string(number);
  return text.size() >= digits ? text : std::string(digits - text.size(), '0') + text;
}

}  // namespace

IndexedSplit::IndexedSplit(base::Files& files, std::string name, const std::vector<int>& image_size,
                           int num_classes)
    : files_(&files) {
  info_ = {std::move(name), 0, {image_size[0], image_size[1], 3}, num_classes};
  form_ = RecordForm::kEncoded;
}

std::uint64_t IndexedSplit::resident_bytes() const {
  return records_.capacity() * sizeof(RecordPlace);
}

std::string IndexedSplit::where(std::int64_t id) const {
  const RecordPlace& place = records_[static_cast<std::size_t>(id)];
  return paths_[place.file] + ": record " + std::to_string(id - first_[place.file]) + ", byte offset " +
         std::to_string(place.offset);
}

std::vector<std::int64_t> IndexedSplit::file_samples() const {
  std::vector<std::int64_t> samples;
  for (std::size_t file = 0; file < first_.size(); ++file) {
    const std::int64_t end = file + 1 < first_.size() ? first_[file + 1] : static_cast<std::int64_t>(records_.size());
    samples.push_back(end - first_[file]);
  }
  return samples;
}

bool IndexedSplit::storage_answers(std::int64_t id) const {
  return files_->read_range(paths_[records_[static_cast<std::size_t>(id)].file], 0, 1).ok();
}

void IndexedSplit::add_file(std::string path) {
  paths_.push_back(std::move(path));
  first_.push_back(static_cast<std::int64_t>(records_.size()));
}

void IndexedSplit::add_record(std::uint64_t offset, std::uint32_t length) {
  records_.push_back({static_cast<std::uint32_t>(paths_.size() - 1), length, offset});
}

void IndexedSplit::add_bad_record(std::uint64_t offset, const std::string& cause) {
  add_record(offset, 0);
  const auto id = static_cast<std::int64_t>(records_.size()) - 1;
  known_bad_.emplace(id, where(id) + ": " + cause);
}

Error IndexedSplit::known_error(std::int64_t id) const {
  return Error{ErrorCode::kCorruptData, known_bad_.at(id)};
}

std::string label_out_of_range(std::int64_t label, int num_classes) {
  return "label " + std::to_string(label) + " is out of range, there are " + std::to_string(num_classes) +
         " classes (0 to " + std::to_string(num_classes - 1) + ")";
}

bool has_word(const std::string& name, const std::string& split) {
  const auto edge = [&](std::size_t at) {
    return at >= name.size() || std::isalnum(static_cast<unsigned char>(name[at])) == 0;
  };
  for (std::size_t at = name.find(split); at != std::string::npos; at = name.find(split, at + 1)) {
    if ((at == 0 || edge(at - 1)) && edge(at + split.size())) return true;
  }
  return false;
}

base::Status check_complete(const std::vector<std::string>& names, const std::string& folder) {
  std::string last_set;
  for (const std::string& name : names) {
    const auto member = set_member(name);
    if (!member) continue;
    // Sorted, so the members of a set follow each other; each set is checked once.
    const std::string set = member->prefix + "/" + member->total + "/" + member->suffix;
    if (set == last_set) continue;
    last_set = set;
    const auto total = static_cast<std::size_t>(std::stoul(member->total));
    // A set with a wild total ends at its first gap.
    for (std::size_t i = 0; i < total; ++i) {
      const std::string wanted =
          member->prefix + "-" + padded(i, member->number.size()) + "-of-" + member->total + member->suffix;
      if (std::binary_search(names.begin(), names.end(), wanted)) continue;
      return Error{ErrorCode::kNotFound, folder + "/" + wanted + " is missing, though " + name +
                                             " says that there are " + std::to_string(total) +
                                             " files: fetch it, or rename the files"};
    }
  }
  return {};
}

}  // namespace evenkeel::trainer
