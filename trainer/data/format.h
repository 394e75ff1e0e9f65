// What open_dataset.cpp asks of each format: one function that opens one split. Nobody else calls these.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/data/split.h"

namespace evenkeel::trainer {

struct FormatRequest {
  base::Files& files;                 // outlives the split
  const contract::DatasetSpec& spec;  // does not
  std::string split;
  int num_classes = 0;           // 0 = the records decide
  const Split* train = nullptr;  // for the eval split: its class names hold
};

using OpenedSplit = base::Result<std::unique_ptr<Split>>;

OpenedSplit open_idx(const FormatRequest& request);
OpenedSplit open_cifar(const FormatRequest& request);
// These three: spec.image_size is given, for their pictures may differ in size.
OpenedSplit open_tfrecord(const FormatRequest& request);
OpenedSplit open_imagefolder(const FormatRequest& request);
OpenedSplit open_webdataset(const FormatRequest& request);

}  // namespace evenkeel::trainer
