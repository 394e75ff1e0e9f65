// From the job's model (a preset or a list of layers) to a forward graph. Pure; called once at start by every
// rank and by `evenkeel-trainer plan`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/graph/graph.h"

namespace evenkeel::trainer {

// How many classes the model itself fixes: options.numClasses, else the units of the last dense layer, else 0
// (the data set decides). Pass it to open_dataset().
int output_classes(const contract::ModelSpec& spec);

// The layers of a preset, or spec.layers; names filled in ("dense_1"), and inputs, so that a list reads as a
// graph ("input": the samples). kInvalidInput: unknown preset or type, a name twice, an input that is no
// layer before this one.
base::Result<std::vector<contract::LayerSpec>> expand_layers(const contract::ModelSpec& spec,
                                                             int num_classes);

// sample_shape without the batch: (28, 28, 1). num_classes >= 1: labels lie below it. `convention`: numbers
// of batch normalisation where a layer does not give its own. kInvalidInput names layer and shapes, also
// where the last layer gives fewer values than there are classes, and where a layer's output leads nowhere.
base::Result<Graph> build_model(
    const contract::ModelSpec& spec, const Shape& sample_shape, int num_classes,
    contract::OptimizerConvention convention = contract::OptimizerConvention::kPyTorch);

}  // namespace evenkeel::trainer
