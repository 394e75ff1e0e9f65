// spec.dataset: where the samples are, how they are read and in which order.
#include "contract/job/field_builder.h"
#include "contract/job/paths.h"
#include "contract/job/schema_parts.h"

namespace evenkeel::contract {
namespace {

FieldRule mean_and_std_rule() {
  return {
      .cel = "(has(self.mean) ? size(self.mean) : 0) == (has(self.std) ? size(self.std) : 0)",
      .message = "mean and std need the same number of values, one for each channel; give both or neither",
      .holds = [](const Json& self, const Json&) {
        return base::child(self, "mean").size() == base::child(self, "std").size();
      }};
}

FieldRule max_skipped_rule() {
  return {.cel = "(self.action == 'Skip') == (self.maxSkipped > 0)",
          .message =
              "action {action} with maxSkipped {maxSkipped}: Skip needs maxSkipped of at least 1, and Fail "
              "needs 0",
          .holds = [](const Json& self, const Json&) {
            return (base::string_at(self, "action") == "Skip") == (base::int_at(self, "maxSkipped") > 0);
          }};
}

FieldRule size_rule() {
  return {.cel = "size(self) != 1",
          .message = "image.size needs height and width, two numbers",
          .holds = [](const Json& self, const Json&) { return self.size() != 1; }};
}

Field image_field() {
  FieldRule positive{.cel = "self > 0.0",
                     .message = "std {} must be greater than 0",
                     .holds = [](const Json& self, const Json&) { return self.get<double>() > 0; }};
  return object(
             "image", "How pixels become numbers: (x / 255 - mean) / std.",
             {list("size", "Height and width that images are brought to; the size of the data where absent.",
                   integer("", "Height or width in pixels.", 1, 8192), 2)
                  .rule(size_rule()),
              list("mean", "Mean of each channel, of x / 255; 0 where absent.",
                   number("", "Mean of a channel.").range(-1e6, 1e6), 16),
              list("std", "Standard deviation of each channel, of x / 255; 1 where absent.",
                   number("", "Standard deviation of a channel.").range(0, 1e6).rule(positive), 16)})
      .rule(mean_and_std_rule());
}

// Whether image.size is given.
bool sized(const Json& dataset) {
  return base::at_path(dataset, {"image", "size"}).size() == 2;
}
constexpr char kSizedCel[] = "(has(self.image) && has(self.image.size) && size(self.image.size) == 2)";

FieldRule photographs_rule() {
  return {.cel = std::string(
                     "!has(self.format) || !(self.format in ['tfrecord', 'imagefolder', 'webdataset']) || ") +
                 kSizedCel,
          .message = "image.size is needed for format {format}, whose images may differ in size",
          .holds = [](const Json& self, const Json&) {
            const std::string format = base::string_at(self, "format");
            return format == "idx" || format == "cifar10" || sized(self) || format.empty();
          }};
}

FieldRule crop_rule() {
  return {.cel = std::string("!has(self.augment) || !('randomResizedCrop' in self.augment) || ") + kSizedCel,
          .message = "augment randomResizedCrop needs image.size, the size that it crops to",
          .holds = [](const Json& self, const Json&) {
            for (const Json& name : base::child(self, "augment")) {
              if (name == "randomResizedCrop") return sized(self);
            }
            return true;
          }};
}

}  // namespace

// A / at the end is forgiven: folders are often written so.
FieldRule plain_path_rule(const char* name) {
  return {
      .cel =
          "!self.contains('//') && !(self + '/').contains('/./') && !(self + '/').contains('/../') && "
          "!(self + '/').startsWith('/etc/evenkeel/') && !(self in ['/etc', '/etc/', '/dev', '/dev/', '/dev/shm', "
          "'/dev/shm/', '/dev/termination-log', '/dev/termination-log/'])",
      .message = std::string(name) +
                 " {} must be a plain absolute path, without //, /./ or /../, and not one that the operator mounts",
      .holds = [](const Json& self, const Json&) {
        std::string path = self.get<std::string>();
        if (path.ends_with('/')) path.pop_back();
        return is_plain_path(path) && !is_own_path(path);
      }};
}

Field dataset_field() {
  return object(
             "dataset", "The samples.",
             {choice("format",
                     "How the samples are stored; idx is the format of MNIST and its kin, plain or gzipped.",
                     {"idx", "cifar10", "tfrecord", "imagefolder", "webdataset"})
                  .required(),
              text("path", "Folder of the data inside the pod, an absolute path.")
                  .length(2, 512)
                  .pattern("^/[^:]+$")
                  .required()
                  .rule(plain_path_rule("path")),
              volume_source_field(
                  "Where the data comes from, mounted at path; the image's own files where absent."),
              group("split", "Which parts of the data are used.",
                    {text("train", "Part that is trained on; idx reads train as train-*.")
                         .length(1, 63)
                         .pattern("^[A-Za-z0-9._-]+$")
                         .defaults("train"),
                     text("eval", "Part that is evaluated on; idx reads test as t10k-*.")
                         .length(1, 63)
                         .pattern("^[A-Za-z0-9._-]+$")
                         .defaults("test")}),
              image_field(),
              group(
                  "sharding", "How samples are dealt to the ranks.",
                  {choice("policy",
                          "Record deals single samples, File whole files; with Off every rank sees everything, "
                          "and an epoch is a pass for each rank. Auto takes Record where any record can be read "
                          "by itself, else File.",
                          {"Auto", "Record", "File", "Off"})
                       .defaults("Auto")}),
              group("shuffle", "Order of the samples.",
                    {boolean("enabled", "Whether every epoch has a new order.").defaults(true),
                     integer("seed",
                             "Seed of the order; the same seed gives the same order for any number of ranks.")
                         .defaults(42)}),
              list("augment",
                   "Random changes to training images, in order: randomResizedCrop (to image.size), "
                   "randomCrop "
                   "(after 4 pixels of zeros around), horizontalFlip.",
                   choice("", "Name of a change.", {"randomResizedCrop", "randomCrop", "horizontalFlip"}),
                   16),
              group(
                  "onBadRecord", "What happens when a sample cannot be read or has a label out of range.",
                  {choice("action", "Fail ends the job; Skip leaves the sample out and counts it.",
                          {"Fail", "Skip"})
                       .defaults("Fail"),
                   integer(
                       "maxSkipped",
                       "Samples that may be skipped in the whole job before it fails; for Skip, at least 1.")
                       .defaults(0)})
                  .defaults({{"action", "Fail"}, {"maxSkipped", 0}})
                  .rule(max_skipped_rule()),
              choice("cache",
                     "Where decoded images are kept after the first epoch; Disk takes the pod's temporary "
                     "folder.",
                     {"None", "Memory", "Disk"})
                  .defaults("None"),
              boolean("verify", "Whether an independent check counts every sample while training.")
                  .defaults(false)
                  .only({false})})
      .required()
      .rule(photographs_rule())
      .rule(crop_rule());
}

}  // namespace evenkeel::contract
