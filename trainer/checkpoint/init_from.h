// model.initFrom: weights to begin with, taken by name and shape from a safetensors file or from a checkpoint
// of ours. What does not fit keeps its random values and is listed: fine-tuning replaces the last layer, and
// nobody should have to guess what was loaded. Called once, by every rank or by the one that broadcasts,
// after the weights are initialised. One thread.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "trainer/checkpoint/safetensors.h"

namespace evenkeel::trainer {

// Names of the model's tensors, but for the last list. other_shape says both shapes.
struct InitFromReport {
  std::string source;  // the file that was read
  std::vector<std::string> loaded;
  std::vector<std::string> skipped;  // as asked, by model.initFrom.skip
  std::vector<std::string> missing_in_file;
  std::vector<std::string>
      other_shape;  // "fc.kernel: F32 (512, 1000) in the file, F32 (512, 5) in the model"
  std::vector<std::string> unused_in_file;
};

// path: a .safetensors file, or the folder of a checkpoint, whose weights are then checked against its
// manifest. skip: ECMAScript expressions; a tensor whose name holds a match is left alone. Errors: an
// expression that is none (kInvalidInput), a file that is damaged or holds values that are not finite
// (kCorruptData), nothing loaded at all (kMismatch). After an error the targets hold anything.
base::Result<InitFromReport> load_initial_weights(base::Files& files, const std::string& path,
                                                  const std::vector<std::string>& skip,
                                                  const std::vector<TensorView>& targets);

// For the log: one line of counts, then each list that is not empty, but for `loaded`.
std::string to_text(const InitFromReport& report);

}  // namespace evenkeel::trainer
