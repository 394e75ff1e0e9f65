// One layer of a model as operators of a graph. Private to this folder; model.h is the way in. Pure.
#pragma once

#include <vector>

#include "base/result.h"
#include "contract/job/spec.h"
#include "trainer/graph/graph.h"

namespace evenkeel::trainer {

base::Error invalid_layer(const std::string& layer, const std::string& what);

// inputs: as many as the layer takes, in the order of spec.inputs. The tensor behind the layer's activation.
base::Result<TensorId> add_layer(Graph& graph, const contract::LayerSpec& layer,
                                 const std::vector<TensorId>& inputs,
                                 contract::OptimizerConvention convention);

}  // namespace evenkeel::trainer
