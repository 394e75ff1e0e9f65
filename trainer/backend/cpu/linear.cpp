// Linear, its backward by data and by weights. Weights keep the plain layout (in, units), row-major, in all
// three, so that what is broadcast and saved is what is computed with.
#include "trainer/backend/cpu/onednn.h"

namespace evenkeel::trainer {
namespace {

using dnnl::inner_product_backward_data;
using dnnl::inner_product_backward_weights;
using dnnl::inner_product_forward;
using dnnl::memory;
using Tag = memory::format_tag;

// The sizes of one linear layer, and oneDNN's view of its tensors. Its weights are (units, in); stored column
// by column that is our (in, units).
struct Linear {
  memory::desc x, kernel, bias, y;

  Linear(std::int64_t batch, std::int64_t in, std::int64_t units)
      : x({batch, in}, memory::data_type::f32, Tag::ab),
        kernel({units, in}, memory::data_type::f32, Tag::ba),
        bias({units}, memory::data_type::f32, Tag::a),
        y({batch, units}, memory::data_type::f32, Tag::ab) {}
};

// forward_training also in evaluation: the same kernel, so the same bits.
inner_product_forward::primitive_desc forward_descriptor(const Linear& l, bool bias, bool relu) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto desc = bias ? inner_product_forward::desc(kind, l.x, l.kernel, l.bias, l.y)
                         : inner_product_forward::desc(kind, l.x, l.kernel, l.y);
  return {desc, onednn_attributes(relu), onednn_engine()};
}

std::unique_ptr<Operator> forward(const Linear& l, const PlanStep& step) {
  const bool bias = step.inputs.size() > 2;
  const auto descriptor = forward_descriptor(l, bias, step.attributes.relu);
  auto op = std::make_unique<OneDnnOperator>(descriptor, inner_product_forward(descriptor));
  op->add_input(DNNL_ARG_SRC, l.x, l.x, step.inputs[0]);
  op->add_input(DNNL_ARG_WEIGHTS, l.kernel, l.kernel, step.inputs[1]);
  if (bias) op->add_input(DNNL_ARG_BIAS, l.bias, l.bias, step.inputs[2]);
  op->add_output(DNNL_ARG_DST, l.y, l.y, step.outputs[0]);
  return op;
}

std::unique_ptr<Operator> backward_data(const Linear& l, const PlanStep& step) {
  const inner_product_backward_data::primitive_desc descriptor(
      inner_product_backward_data::desc(l.x, l.kernel, l.y), onednn_attributes(), onednn_engine(),
      forward_descriptor(l, false, false));
  auto op = std::make_unique<OneDnnOperator>(descriptor, inner_product_backward_data(descriptor));
  op->add_input(DNNL_ARG_DIFF_DST, l.y, l.y, step.inputs[0]);
  op->add_input(DNNL_ARG_WEIGHTS, l.kernel, l.kernel, step.inputs[1]);
  op->add_output(DNNL_ARG_DIFF_SRC, l.x, l.x, step.outputs[0]);
  return op;
}

std::unique_ptr<Operator> backward_weights(const Linear& l, const PlanStep& step) {
  const bool bias = step.outputs.size() > 1;
  const auto desc = bias ? inner_product_backward_weights::desc(l.x, l.kernel, l.bias, l.y)
                         : inner_product_backward_weights::desc(l.x, l.kernel, l.y);
  const inner_product_backward_weights::primitive_desc descriptor(desc, onednn_attributes(), onednn_engine(),
                                                                  forward_descriptor(l, bias, false));
  auto op = std::make_unique<OneDnnOperator>(descriptor, inner_product_backward_weights(descriptor));
  op->add_input(DNNL_ARG_SRC, l.x, l.x, step.inputs[0]);
  op->add_input(DNNL_ARG_DIFF_DST, l.y, l.y, step.inputs[1]);
  op->add_output(DNNL_ARG_DIFF_WEIGHTS, l.kernel, l.kernel, step.outputs[0]);
  if (bias) op->add_output(DNNL_ARG_DIFF_BIAS, l.bias, l.bias, step.outputs[1]);
  return op;
}

std::unique_ptr<Operator> make(const Plan& plan, const PlanStep& step) {
  const auto width = [&](TensorId id) { return tensor_of(plan, id).shape.back(); };
  if (step.op == OpKind::kLinear) {
    return forward(Linear(plan.batch, width(step.inputs[0]), width(step.outputs[0])), step);
  }
  if (step.op == OpKind::kLinearBackwardData) {
    return backward_data(Linear(plan.batch, width(step.outputs[0]), width(step.inputs[0])), step);
  }
  return backward_weights(Linear(plan.batch, width(step.inputs[0]), width(step.inputs[1])), step);
}

}  // namespace

OperatorResult make_linear(const Plan& plan, const PlanStep& step) {
  return guarded(plan, step, [&] { return make(plan, step); });
}

}  // namespace evenkeel::trainer
