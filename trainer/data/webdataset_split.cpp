// Format webdataset: tar archives <split>*.tar, or with the split as a word of their name. Members of a
// sample share a key, their path up to the first dot of the base name; the rest of the name says what they
// are: jpg, jpeg or png the picture, cls the label as digits. Other members are ignored; a key with neither
// picture nor label is no sample.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <unordered_map>

#include "trainer/data/format.h"
#include "trainer/data/indexed_split.h"
#include "trainer/data/tar_reader.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::uint64_t kMaxLabelBytes = 64;

struct MemberName {
  std::string key;
  std::string kind;  // lower case
};

MemberName split_name(const std::string& path) {
  const std::size_t base = path.rfind('/') + 1;  // npos + 1 = 0
  const std::size_t dot = path.find('.', base);
  if (dot == std::string::npos) return {path, ""};
  MemberName name{path.substr(0, dot), path.substr(dot + 1)};
  std::transform(name.kind.begin(), name.kind.end(), name.kind.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

// What one archive says about a key, until the archive has been read.
struct Draft {
  std::string key;
  std::uint64_t offset = 0;  // of the picture's data, else of the first member
  std::uint64_t length = 0;
  int pictures = 0;
  int labels = 0;
  std::int64_t label = 0;
  std::string cause;
};

class WebdatasetSplit : public IndexedSplit {
 public:
  WebdatasetSplit(const FormatRequest& request)
      : IndexedSplit(request.files, request.split, request.spec.image_size, request.num_classes) {}

  Status index(const std::string& path) {
    EVENKEEL_ASSIGN(const std::uint64_t size, files_->size(path));
    FileWindow window(*files_, path, size);
    std::vector<Draft> drafts;
    std::unordered_map<std::string, std::size_t> by_key;
    const auto draft_of = [&](const std::string& key, std::uint64_t offset) -> Draft& {
      const auto [place, is_new] = by_key.try_emplace(key, drafts.size());
      if (is_new) {
        drafts.emplace_back();
        drafts.back().key = key;
        drafts.back().offset = offset;
      }
      return drafts[place->second];
    };
    const auto on_member = [&](const TarMember& member) -> Status {
      const MemberName name = split_name(member.name);
      const bool picture = name.kind == "jpg" || name.kind == "jpeg" || name.kind == "png";
      if ((!picture && name.kind != "cls") || member.kind == TarKind::kDirectory) return {};
      return take(window, member, picture, draft_of(name.key, member.data_offset));
    };
    const auto on_fault = [&](const TarFault& fault) {
      // Between members: it is the last sample that is cut short, unless that one is whole.
      const bool pending = !drafts.empty() && (drafts.back().pictures == 0 || drafts.back().labels == 0);
      const std::string key = !fault.member.empty() ? split_name(fault.member).key
                              : pending             ? drafts.back().key
                                                    : std::string("\n");
      draft_of(key, fault.offset).cause = fault.cause;
    };
    EVENKEEL_TRY(walk_tar(window, path, on_member, on_fault));
    add_file(path);
    for (const Draft& draft : drafts) settle(draft);
    set_samples();
    return {};
  }

  // Labels are checked once all archives are known, for they may decide the number of classes.
  void judge_labels() {
    if (info_.num_classes <= 0 && !labels_.empty()) {
      info_.num_classes = *std::max_element(labels_.begin(), labels_.end()) + 1;
    }
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const auto id = static_cast<std::int64_t>(i);
      if (is_known_bad(id) || labels_[i] < info_.num_classes) continue;
      known_bad_.emplace(id, where(id) + ": " + label_out_of_range(labels_[i], info_.num_classes));
    }
  }

  std::uint64_t resident_bytes() const override {
    return IndexedSplit::resident_bytes() + labels_.capacity() * sizeof(std::int32_t);
  }

  Result<StoredRecord> read(std::int64_t id) const override {
    if (is_known_bad(id)) return known_error(id);
    const RecordPlace& place = records_[static_cast<std::size_t>(id)];
    auto bytes = files_->read_range(paths_[place.file], place.offset, place.length);
    if (!bytes.ok()) return base::with_context(where(id), bytes.error());
    StoredRecord record;
    record.label = labels_[static_cast<std::size_t>(id)];
    record.stored_bytes = bytes->size();
    const std::size_t length = bytes->size();
    record.own(*std::move(bytes), 0, length);
    return record;
  }

 private:
  Status take(FileWindow& window, const TarMember& member, bool picture, Draft& draft) {
    if (member.kind != TarKind::kFile) {
      draft.cause = member.name + " is a link or a special file, not its content";
      return {};
    }
    if (picture) {
      ++draft.pictures;
      draft.offset = member.data_offset;
      draft.length = member.size;
      if (member.size == 0) draft.cause = "the image is empty";
      if (member.size > kMaxRecordBytes) {
        draft.cause = "the image has " + std::to_string(member.size) + " bytes, above the limit of " +
                      std::to_string(kMaxRecordBytes);
      }
      return {};
    }
    ++draft.labels;
    if (member.size > kMaxLabelBytes) {
      draft.cause = member.name + " has " + std::to_string(member.size) + " bytes, a label has a few digits";
      return {};
    }
    EVENKEEL_ASSIGN(std::string_view text,
                    window.view(member.data_offset, static_cast<std::size_t>(member.size)));
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
      text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), draft.label);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
      draft.cause = member.name + " is no number: \"" + printable(text) + "\"";
    }
    return {};
  }

  static std::string printable(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
    }
    return out;
  }

  void settle(const Draft& draft) {
    std::string cause = draft.cause;
    constexpr std::int64_t kLabelLimit = std::int64_t{1} << 30;
    if (cause.empty() && draft.pictures == 0) cause = "sample " + draft.key + " has no picture";
    if (cause.empty() && draft.labels == 0) cause = "sample " + draft.key + " has no .cls";
    if (cause.empty() && draft.pictures > 1) cause = "sample " + draft.key + " has more than one picture";
    if (cause.empty() && draft.labels > 1) cause = "sample " + draft.key + " has more than one .cls";
    if (cause.empty() && (draft.label < 0 || draft.label > kLabelLimit)) {
      cause = "label " + std::to_string(draft.label) + " is out of range";
    }
    labels_.push_back(cause.empty() ? static_cast<std::int32_t>(draft.label) : 0);
    if (cause.empty()) {
      add_record(draft.offset, static_cast<std::uint32_t>(draft.length));
    } else {
      add_bad_record(draft.offset, cause);
    }
  }

  std::vector<std::int32_t> labels_;
};

Result<std::vector<std::string>> archives(const FormatRequest& request) {
  const std::string& folder = request.spec.path;
  EVENKEEL_ASSIGN(const auto entries, request.files.list(folder));
  std::vector<std::string> names;
  for (const base::DirEntry& entry : entries) {
    const bool meant = entry.name.starts_with(request.split) || has_word(entry.name, request.split);
    if (entry.is_directory || entry.name.starts_with(".") || !meant) continue;
    for (const char* packed : {".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz"}) {
      if (entry.name.ends_with(packed)) {
        return Error{ErrorCode::kUnsupported, folder + "/" + entry.name +
                                                  " is compressed, and its records cannot be reached one by "
                                                  "one: decompress it (JPEG records hardly shrink)"};
      }
    }
    if (entry.name.ends_with(".tar")) names.push_back(entry.name);
  }
  if (!names.empty()) return names;
  return Error{ErrorCode::kNotFound, "no archive " + request.split + "*.tar in " + folder +
                                         ": check dataset.path and dataset.split, or mount the volume"};
}

}  // namespace

OpenedSplit open_webdataset(const FormatRequest& request) {
  EVENKEEL_ASSIGN(const std::vector<std::string> names, archives(request));
  auto split = std::make_unique<WebdatasetSplit>(request);
  for (const std::string& name : names) EVENKEEL_TRY(split->index(request.spec.path + "/" + name));
  split->judge_labels();
  return std::unique_ptr<Split>(std::move(split));
}

}  // namespace evenkeel::trainer
