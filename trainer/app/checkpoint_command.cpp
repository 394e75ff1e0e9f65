#include "trainer/app/checkpoint_command.h"

#include <algorithm>
#include <iomanip>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "contract/exit_codes.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/safetensors.h"

namespace evenkeel::trainer {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using contract::ExitCode;

int code_of(const Error& error) {
  return static_cast<int>(contract::exit_code_of(error.code));
}

int fail(std::ostream& err, const char* command, const Error& error) {
  err << "evenkeel-trainer checkpoint " << command << ": " << error.message << "\n";
  return code_of(error);
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string last_part(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string size_text(std::uint64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  std::ostringstream text;
  text << std::fixed << std::setprecision(unit == 0 ? 0 : 1) << value << " " << units[unit];
  return text.str();
}

bool ends_with_temporary(const std::string& name) {
  return name.ends_with(contract::kTemporarySuffix);
}

// A folder that is a checkpoint or was to become one, by its name.
struct Candidate {
  std::int64_t step = 0;
  std::string name;
};

Result<std::vector<Candidate>> candidates(base::Files& files, const std::string& root) {
  EVENKEEL_ASSIGN(const std::vector<base::DirEntry> entries, files.list(root));
  std::vector<Candidate> found;
  for (const base::DirEntry& entry : entries) {
    if (!entry.is_directory) continue;
    std::string stem = entry.name;
    if (ends_with_temporary(stem))
      stem.resize(stem.size() - std::string_view(contract::kTemporarySuffix).size());
    const Result<std::int64_t> step = contract::parse_checkpoint_directory_name(stem);
    if (step.ok()) found.push_back({*step, entry.name});
  }
  std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(b.step, a.name) < std::pair(a.step, b.name);
  });
  return found;
}

void print_row(std::ostream& out, const std::string& step, const std::string& epoch,
               const std::string& samples, const std::string& size, const std::string& state) {
  out << std::right << std::setw(10) << step << std::setw(8) << epoch << std::setw(14) << samples
      << std::setw(12) << size << "  " << std::left << state << "\n";
}

void print_candidate(base::Files& files, const std::string& root, const Candidate& candidate,
                     std::ostream& out) {
  const std::string step = std::to_string(candidate.step), folder = root + "/" + candidate.name;
  if (ends_with_temporary(candidate.name)) {
    return print_row(out, step, "-", "-", "-", "never finished, is not loaded (" + candidate.name + ")");
  }
  const Result<FoundCheckpoint> manifest = read_manifest(files, folder);
  if (!manifest.ok()) return print_row(out, step, "-", "-", "-", manifest.error().message);
  std::uint64_t bytes = 0;
  for (const contract::CheckpointFile& file : manifest->manifest.files) bytes += file.size;
  const Result<FoundCheckpoint> verified = verify_checkpoint(files, folder);
  print_row(out, step, std::to_string(manifest->manifest.epoch), std::to_string(manifest->manifest.samples),
            size_text(bytes), verified.ok() ? "ok" : verified.error().message);
}

// The tensors of a file: a header that parses, beyond size and CRC.
Status check_content(base::Files& files, const std::string& folder, const contract::CheckpointFile& file) {
  EVENKEEL_TRY(verify_file(files, folder, file));
  if (!file.name.ends_with(".safetensors")) return {};
  const Result<SafetensorsIndex> index = read_safetensors_index(files, folder + "/" + file.name);
  return index.ok() ? Status() : Status(index.error());
}

Status check_step(const contract::CheckpointManifest& manifest, const std::string& folder) {
  EVENKEEL_ASSIGN(const std::int64_t step, contract::parse_checkpoint_directory_name(last_part(folder)));
  if (step == manifest.step) return {};
  return Error{ErrorCode::kCorruptData, "the manifest is of step " + std::to_string(manifest.step)};
}

// Keeps the worst: an I/O error says nothing about the data.
class Verdict {
 public:
  explicit Verdict(std::ostream& out) : out_(out) {}
  void note(const std::string& name, const std::string& good, const Status& status) {
    std::string text = status.ok() ? good : status.error().message;
    if (text.starts_with(name + ": ")) text.erase(0, name.size() + 2);  // most messages begin with it
    out_ << (status.ok() ? "ok    " : "BAD   ") << name << ": " << text << "\n";
    if (status.ok()) return;
    // A step in the folder's name that is none is bad data here, not a bad argument.
    const int code = status.error().code == ErrorCode::kInvalidInput ? static_cast<int>(ExitCode::kBadData)
                                                                     : code_of(status.error());
    code_ = std::max(code_, code);
  }
  int code() const { return code_; }

 private:
  std::ostream& out_;
  int code_ = 0;
};

std::string hex_text(std::uint32_t value) {
  std::ostringstream text;
  text << std::hex << std::setw(8) << std::setfill('0') << value;
  return text.str();
}

// One file's tensors, read whole.
struct TensorFile {
  std::vector<SafetensorsEntry> entries;
  std::string data;
};

Result<TensorFile> read_tensors(base::Files& files, const std::string& path) {
  EVENKEEL_ASSIGN(const SafetensorsIndex index, read_safetensors_index(files, path));
  TensorFile file;
  file.entries = index.entries;
  const std::uint64_t bytes = index.entries.empty() ? 0 : index.entries.back().end;
  EVENKEEL_ASSIGN(file.data, files.read_range(path, index.data_offset, static_cast<std::size_t>(bytes)));
  return file;
}

bool lists(const contract::CheckpointManifest& manifest, const char* name) {
  return std::any_of(manifest.files.begin(), manifest.files.end(),
                     [&](const contract::CheckpointFile& file) { return file.name == name; });
}

Result<std::vector<TensorFile>> read_content(base::Files& files, const FoundCheckpoint& found,
                                             ExportContent content) {
  std::vector<TensorFile> parts(1);
  EVENKEEL_ASSIGN(parts[0], read_tensors(files, found.directory + "/" + contract::kWeightsFile));
  if (content == ExportContent::kWeights) return parts;
  if (!lists(found.manifest, contract::kOptimizerFile)) {
    return Error{ErrorCode::kNotFound, found.directory + " has no optimizer state"};
  }
  parts.emplace_back();
  EVENKEEL_ASSIGN(parts[1], read_tensors(files, found.directory + "/" + contract::kOptimizerFile));
  return parts;
}

// Tensors one behind the other; a name that is there twice would make a file that nobody can read.
Result<std::vector<SafetensorsEntry>> join_entries(const std::vector<TensorFile>& parts) {
  std::vector<SafetensorsEntry> entries;
  std::set<std::string> names;
  std::uint64_t base = 0;
  for (const TensorFile& part : parts) {
    for (SafetensorsEntry entry : part.entries) {
      if (!names.insert(entry.name).second)
        return Error{ErrorCode::kCorruptData, "tensor \"" + entry.name + "\" is there twice"};
      entry.begin += base;
      entry.end += base;
      entries.push_back(std::move(entry));
    }
    base += part.data.size();
  }
  return entries;
}

// The number of tensors written.
Result<std::size_t> export_checkpoint(base::Files& files, const std::string& folder,
                                      const std::string& output, ExportContent content) {
  EVENKEEL_ASSIGN(const FoundCheckpoint found, read_manifest(files, folder));
  for (const contract::CheckpointFile& file : found.manifest.files) {
    const bool wanted = file.name == contract::kWeightsFile || content == ExportContent::kWeightsAndOptimizer;
    if (wanted) EVENKEEL_TRY(verify_file(files, folder, file));
  }
  EVENKEEL_ASSIGN(const std::vector<TensorFile> parts, read_content(files, found, content));
  EVENKEEL_ASSIGN(const std::vector<SafetensorsEntry> entries, join_entries(parts));
  std::string text = safetensors_header(entries);
  for (const TensorFile& part : parts) text += part.data;
  const Status written = base::write_atomic(files, output, text);
  // Whatever is wrong with the place to write to, the data was good.
  if (!written.ok()) return Error{ErrorCode::kIo, written.error().message};
  return entries.size();
}

}  // namespace

int run_checkpoint_ls(base::Files& files, const std::string& root, std::ostream& out, std::ostream& err) {
  const std::string folder = without_slash(root);
  const Result<std::vector<Candidate>> found = candidates(files, folder);
  if (!found.ok()) return fail(err, "ls", found.error());
  if (found->empty()) {
    out << "no checkpoints in " << folder << "\n";
    return 0;
  }
  print_row(out, "STEP", "EPOCH", "SAMPLES", "SIZE", "STATE");
  for (const Candidate& candidate : *found) print_candidate(files, folder, candidate, out);
  return 0;
}

int run_checkpoint_verify(base::Files& files, const std::string& folder, std::ostream& out,
                          std::ostream& err) {
  const std::string directory = without_slash(folder);
  const Result<std::vector<base::DirEntry>> entries = files.list(directory);
  if (!entries.ok()) return fail(err, "verify", entries.error());
  Verdict verdict(out);
  const Result<FoundCheckpoint> found = read_manifest(files, directory);
  if (!found.ok()) {
    verdict.note(contract::kManifestFile, "", found.error());
    return verdict.code();
  }
  const contract::CheckpointManifest& manifest = found->manifest;
  verdict.note(contract::kManifestFile,
               "step " + std::to_string(manifest.step) + " of job " + manifest.job_uid,
               check_step(manifest, directory));
  std::set<std::string> known{contract::kManifestFile};
  for (const contract::CheckpointFile& file : manifest.files) {
    known.insert(file.name);
    verdict.note(file.name, std::to_string(file.size) + " bytes, CRC-32C " + hex_text(file.crc32c),
                 check_content(files, directory, file));
  }
  for (const base::DirEntry& entry : *entries) {
    if (!known.contains(entry.name)) out << "note  " << entry.name << ": the manifest does not list it\n";
  }
  return verdict.code();
}

int run_checkpoint_export(base::Files& files, const std::string& folder, const std::string& output,
                          ExportContent content, std::ostream& out, std::ostream& err) {
  const Result<std::size_t> tensors = export_checkpoint(files, without_slash(folder), output, content);
  if (!tensors.ok()) return fail(err, "export", tensors.error());
  out << output << ": " << *tensors << " tensors\n";
  return 0;
}

void add_checkpoint_command(CLI::App& app, CheckpointCommand& chosen) {
  chosen.command = app.add_subcommand("checkpoint", "Look at checkpoints, verify one, export its weights");
  chosen.command->require_subcommand(1);
  chosen.ls = chosen.command->add_subcommand("ls", "List the checkpoints of a folder, newest first");
  chosen.ls->add_option("ROOT", chosen.folder, "Folder of a job's checkpoints (checkpoint.path)")->required();
  chosen.verify = chosen.command->add_subcommand(
      "verify", "Check every file of one checkpoint; exit code 65 when something is wrong");
  chosen.verify->add_option("DIR", chosen.folder, "One checkpoint: a folder step-<number>")->required();
  chosen.export_to = chosen.command->add_subcommand(
      "export", "Write the tensors of one checkpoint as one safetensors file for other programs");
  chosen.export_to->add_option("DIR", chosen.folder, "One checkpoint: a folder step-<number>")->required();
  chosen.export_to->add_option("OUT", chosen.output, "The .safetensors file to write")->required();
  CLI::Option* optimizer =
      chosen.export_to->add_flag("--with-optimizer", chosen.with_optimizer, "The optimizer's state too");
  chosen.export_to
      ->add_flag("--weights-only", chosen.weights_only, "Weights and running statistics alone (the default)")
      ->excludes(optimizer);
}

int run_checkpoint_command(const CheckpointCommand& chosen, base::Files& files, std::ostream& out,
                           std::ostream& err) {
  if (chosen.ls->parsed()) return run_checkpoint_ls(files, chosen.folder, out, err);
  if (chosen.verify->parsed()) return run_checkpoint_verify(files, chosen.folder, out, err);
  const ExportContent content =
      chosen.with_optimizer ? ExportContent::kWeightsAndOptimizer : ExportContent::kWeights;
  return run_checkpoint_export(files, chosen.folder, chosen.output, content, out, err);
}

}  // namespace evenkeel::trainer
