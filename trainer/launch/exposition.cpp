#include "trainer/launch/exposition.h"

#include <map>
#include <string_view>

namespace evenkeel::trainer {
namespace {

constexpr std::string_view kHelp = "# HELP ";
constexpr std::string_view kType = "# TYPE ";
constexpr std::string_view kProcess = "process_";

struct Family {
  std::string help, type;  // whole lines
  std::string samples;
};
using Families = std::map<std::string, Family, std::less<>>;

// The next line without its end; `text` goes on behind it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view name_in(std::string_view line) {
  line.remove_prefix(kHelp.size());  // as long as kType
  return line.substr(0, line.find(' '));
}

// x 1 -> x{rank="3"} 1; x{a="b"} 1 -> x{rank="3",a="b"} 1
std::string with_rank(std::string_view sample, int rank) {
  const std::size_t end = sample.find_first_of("{ ");
  if (end == std::string_view::npos) return std::string(sample);
  const std::string label = "rank=\"" + std::to_string(rank) + "\"";
  const bool has_labels = sample[end] == '{';
  return std::string(sample.substr(0, end)) + "{" + label + (has_labels ? "," : "}") +
         std::string(sample.substr(has_labels ? end + 1 : end));
}

void add_page(Families& families, const RankPage& page) {
  std::string_view text = page.text;
  std::string help;
  std::string_view name;
  Family* family = nullptr;  // null: nothing to be added to
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with(kHelp)) {
      help = line;
    } else if (line.starts_with(kType)) {
      name = name_in(line);
      family = &families[std::string(name)];
      if (family->type.empty()) {
        family->type = line;
        family->help = help.empty() || name_in(help) != name ? "" : help;
      } else if (family->type != line) {
        family = nullptr;
      }
    } else if (!line.empty() && !line.starts_with('#') && family != nullptr) {
      family->samples += name.starts_with(kProcess) ? with_rank(line, page.rank) : std::string(line);
      family->samples += '\n';
    }
  }
}

}  // namespace

std::string merge_pages(const std::vector<RankPage>& pages) {
  Families families;
  for (const RankPage& page : pages) add_page(families, page);
  std::string text;
  for (const auto& [name, family] : families) {
    if (!family.help.empty()) text += family.help + "\n";
    text += family.type + "\n" + family.samples;
  }
  return text;
}

}  // namespace evenkeel::trainer
