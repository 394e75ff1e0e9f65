#include "trainer/data/tar_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::uint64_t kMaxNameBytes = 64 << 10;  // of a pax header or a GNU long name

// A field of text ends at its first zero byte.
std::string_view text_field(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view field = header.substr(at, size);
  return field.substr(0, field.find('\0'));
}

// Octal digits, or base 256 where the first bit is set.
std::optional<std::uint64_t> number_field(std::string_view header, std::size_t at, std::size_t size) {
  std::string_view field = header.substr(at, size);
  std::uint64_t value = 0;
  if ((static_cast<std::uint8_t>(field[0]) & 0x80) != 0) {
    value = static_cast<std::uint8_t>(field[0]) & 0x7f;
    for (const char c : field.substr(1)) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | static_cast<std::uint8_t>(c);
    }
    return value;
  }
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  field = field.substr(0, field.find_first_of(std::string_view(" \0", 2)));
  for (const char c : field) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// The sum of the header's bytes, its own field read as blanks. Old programs summed signed bytes.
bool checksum_matches(std::string_view header) {
  const auto stored = number_field(header, 148, 8);
  std::int64_t plain = 0, with_sign = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const char c = i >= 148 && i < 156 ? ' ' : header[i];
    plain += static_cast<std::uint8_t>(c);
    with_sign += static_cast<signed char>(c);
  }
  return stored &&
         (static_cast<std::int64_t>(*stored) == plain || static_cast<std::int64_t>(*stored) == with_sign);
}

// What a pax header says about the member behind it.
struct PaxFields {
  std::optional<std::string> path;
  std::optional<std::uint64_t> size;
};

std::optional<std::uint64_t> decimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Lines "length key=value\n", the length of the whole line in front. False: damaged.
bool read_pax(std::string_view text, PaxFields& fields) {
  while (!text.empty() && text.front() != '\0') {
    const std::size_t blank = text.find(' ');
    const auto length = blank == std::string_view::npos ? std::nullopt : decimal(text.substr(0, blank));
    if (!length || *length <= blank + 1 || *length > text.size() || text[*length - 1] != '\n') return false;
    const std::string_view line = text.substr(blank + 1, *length - blank - 2);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = line.substr(0, equals), value = line.substr(equals + 1);
    if (key == "path") fields.path = std::string(value);
    if (key == "size") {
      fields.size = decimal(value);
      if (!fields.size) return false;
    }
    text.remove_prefix(*length);
  }
  return true;
}

TarKind kind_of(char type) {
  switch (type) {
    case '0':
    case '\0':
    case '7':  // contiguous: a file
      return TarKind::kFile;
    case '1':
    case '2':
      return TarKind::kLink;
    case '5':
      return TarKind::kDirectory;
    default:
      return TarKind::kOther;
  }
}

std::string ustar_name(std::string_view header) {
  const std::string name(text_field(header, 0, 100));
  const bool ustar = header.substr(257, 6) == std::string_view("ustar\0", 6);
  const std::string_view prefix = ustar ? text_field(header, 345, 155) : std::string_view();
  return prefix.empty() ? name : std::string(prefix) + "/" + name;
}

class Walk {
 public:
  Walk(FileWindow& file, const std::string& path) : file_(file), path_(path) {}

  Status run(const std::function<Status(const TarMember&)>& on_member,
             const std::function<void(const TarFault&)>& on_fault) {
    while (at_ < file_.size()) {
      if (file_.size() - at_ < kTarBlock) {
        on_fault({at_, "", ends("inside a header")});
        return {};
      }
      EVENKEEL_ASSIGN(const std::string_view header, file_.view(at_, kTarBlock));
      if (header.find_first_not_of('\0') == std::string_view::npos) return {};  // the end mark
      EVENKEEL_ASSIGN(TarMember member, read_header(header));
      if (member.size > file_.size() - member.data_offset) {
        on_fault({at_, member.name, ends("inside " + member.name)});
        return {};
      }
      EVENKEEL_ASSIGN(const bool reported, take_extension(header[156], member));
      if (!reported) EVENKEEL_TRY(on_member(member));
      const std::uint64_t data_end = member.data_offset + member.size;
      const std::uint64_t padding = (kTarBlock - data_end % kTarBlock) % kTarBlock;
      at_ = data_end + std::min(padding, file_.size() - data_end);
    }
    // Without the blocks of zeros that end an archive, nobody can say whether members are missing.
    if (file_.size() > 0) on_fault({at_, "", ends("without the mark that ends an archive")});
    return {};
  }

 private:
  std::string ends(const std::string& how) const {
    return "truncated: the archive ends at byte " + std::to_string(file_.size()) + " " + how;
  }

  Error damaged(const std::string& what) const {
    return Error{ErrorCode::kCorruptData,
                 path_ + ": byte offset " + std::to_string(at_) + ": " + what +
                     ": what follows in the archive cannot be found; fetch it again"};
  }

  Result<TarMember> read_header(std::string_view header) {
    if (!checksum_matches(header)) return damaged("the checksum of the tar header does not match");
    const auto size = number_field(header, 124, 12);
    if (!size || *size > (std::uint64_t{1} << 62)) return damaged("the tar header has no valid size");
    TarMember member;
    member.kind = kind_of(header[156]);
    member.name = long_name_.empty() ? ustar_name(header) : long_name_;
    member.header_offset = at_;
    member.data_offset = at_ + kTarBlock;
    // Links, directories and devices have no data, whatever the field says.
    const bool no_data = member.kind == TarKind::kLink || member.kind == TarKind::kDirectory ||
                         header[156] == '3' || header[156] == '4' || header[156] == '6';
    member.size = no_data ? 0 : pax_size_.value_or(*size);
    return member;
  }

  // Whether the member only describes others; then it is remembered for the next.
  Result<bool> take_extension(char type, const TarMember& member) {
    const bool names_next = type == 'x' || type == 'L';
    const bool no_matter = type == 'g' || type == 'K' || type == 'V';
    if (no_matter) return true;
    if (type == 'S') return damaged("sparse members are not supported, write the archive without them");
    if (!names_next) {
      long_name_.clear();
      pax_size_.reset();
      return false;
    }
    if (member.size > kMaxNameBytes) {
      return damaged("an extended header of " + std::to_string(member.size) + " bytes, above the limit of " +
                     std::to_string(kMaxNameBytes));
    }
    EVENKEEL_ASSIGN(const std::string_view text,
                    file_.view(member.data_offset, static_cast<std::size_t>(member.size)));
    if (type == 'L') {
      long_name_ = text.substr(0, text.find('\0'));
      return true;
    }
    PaxFields fields;
    if (!read_pax(text, fields)) return damaged("a damaged pax header");
    if (fields.path) long_name_ = *fields.path;
    if (fields.size) pax_size_ = fields.size;
    return true;
  }

  FileWindow& file_;
  const std::string& path_;
  std::uint64_t at_ = 0;
  std::string long_name_;  // for the next member
  std::optional<std::uint64_t> pax_size_;
};

}  // namespace

Status walk_tar(FileWindow& file, const std::string& path,
                const std::function<Status(const TarMember&)>& on_member,
                const std::function<void(const TarFault&)>& on_fault) {
  return Walk(file, path).run(on_member, on_fault);
}

}  // namespace evenkeel::trainer
