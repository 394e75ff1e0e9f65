// Linear, its backward by data and by weights: the only file that knows oneDNN (API 2.x), and where its
// exceptions end. Weights keep the plain layout (in, units), row-major, in all three, so that what is
// broadcast and saved is what is computed with.
#include <dnnl.hpp>
#include <unordered_map>

#include "trainer/backend/cpu/operators.h"

namespace evenkeel::trainer {
namespace {

using dnnl::inner_product_backward_data;
using dnnl::inner_product_backward_weights;
using dnnl::inner_product_forward;
using dnnl::memory;
using Tag = memory::format_tag;

dnnl::engine& cpu() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// A primitive with its arguments: memories without memory until bind().
class Primitive : public Operator {
 public:
  template <class Descriptor>
  Primitive(const Descriptor& descriptor, dnnl::primitive primitive)
      : primitive_(std::move(primitive)), stream_(cpu()), kernel_(descriptor.impl_info_str()) {
    const memory::desc scratch = descriptor.scratchpad_desc();
    workspace_bytes_ = scratch.get_size();
    arguments_[DNNL_ARG_SCRATCHPAD] = memory(scratch, cpu(), nullptr);
  }

  void add(int argument, const memory::desc& desc, TensorId tensor) {
    arguments_[argument] = memory(desc, cpu(), nullptr);
    tensor_of_[argument] = tensor;
  }

  void bind(const TensorAddresses& addresses) override {
    for (const auto& [argument, tensor] : tensor_of_)
      arguments_[argument].set_data_handle(addresses.at(tensor));
    arguments_[DNNL_ARG_SCRATCHPAD].set_data_handle(workspace_bytes_ == 0 ? nullptr : addresses.workspace);
  }

  void run() noexcept override { primitive_.execute(stream_, arguments_); }
  std::uint64_t workspace_bytes() const override { return workspace_bytes_; }
  std::string kernel() const override { return kernel_; }

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::string kernel_;
  std::uint64_t workspace_bytes_ = 0;
  std::unordered_map<int, memory> arguments_;
  std::unordered_map<int, TensorId> tensor_of_;
};

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

dnnl::primitive_attr attributes(bool relu) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (relu) {
    dnnl::post_ops after;
    after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attr.set_post_ops(after);
  }
  return attr;
}

// forward_training also in evaluation: the same kernel, so the same bits.
inner_product_forward::primitive_desc forward_descriptor(const Linear& l, bool bias, bool relu) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto desc = bias ? inner_product_forward::desc(kind, l.x, l.kernel, l.bias, l.y)
                         : inner_product_forward::desc(kind, l.x, l.kernel, l.y);
  return {desc, attributes(relu), cpu()};
}

std::unique_ptr<Operator> forward(const Linear& l, const PlanStep& step) {
  const bool bias = step.inputs.size() > 2;
  const auto descriptor = forward_descriptor(l, bias, step.fused_relu);
  auto op = std::make_unique<Primitive>(descriptor, inner_product_forward(descriptor));
  op->add(DNNL_ARG_SRC, l.x, step.inputs[0]);
  op->add(DNNL_ARG_WEIGHTS, l.kernel, step.inputs[1]);
  if (bias) op->add(DNNL_ARG_BIAS, l.bias, step.inputs[2]);
  op->add(DNNL_ARG_DST, l.y, step.outputs[0]);
  return op;
}

std::unique_ptr<Operator> backward_data(const Linear& l, const PlanStep& step) {
  const inner_product_backward_data::primitive_desc descriptor(
      inner_product_backward_data::desc(l.x, l.kernel, l.y), attributes(false), cpu(),
      forward_descriptor(l, false, false));
  auto op = std::make_unique<Primitive>(descriptor, inner_product_backward_data(descriptor));
  op->add(DNNL_ARG_DIFF_DST, l.y, step.inputs[0]);
  op->add(DNNL_ARG_WEIGHTS, l.kernel, step.inputs[1]);
  op->add(DNNL_ARG_DIFF_SRC, l.x, step.outputs[0]);
  return op;
}

std::unique_ptr<Operator> backward_weights(const Linear& l, const PlanStep& step) {
  const bool bias = step.outputs.size() > 1;
  const auto desc = bias ? inner_product_backward_weights::desc(l.x, l.kernel, l.bias, l.y)
                         : inner_product_backward_weights::desc(l.x, l.kernel, l.y);
  const inner_product_backward_weights::primitive_desc descriptor(desc, attributes(false), cpu(),
                                                                  forward_descriptor(l, bias, false));
  auto op = std::make_unique<Primitive>(descriptor, inner_product_backward_weights(descriptor));
  op->add(DNNL_ARG_SRC, l.x, step.inputs[0]);
  op->add(DNNL_ARG_DIFF_DST, l.y, step.inputs[1]);
  op->add(DNNL_ARG_DIFF_WEIGHTS, l.kernel, step.outputs[0]);
  if (bias) op->add(DNNL_ARG_DIFF_BIAS, l.bias, step.outputs[1]);
  return op;
}

std::unique_ptr<Operator> make(const Plan& plan, const PlanStep& step) {
  const auto width = [&](TensorId id) { return plan.tensors[static_cast<std::size_t>(id)].shape.back(); };
  if (step.op == OpKind::kLinear) {
    return forward(Linear(plan.batch, width(step.inputs[0]), width(step.outputs[0])), step);
  }
  if (step.op == OpKind::kLinearBackwardData) {
    return backward_data(Linear(plan.batch, width(step.outputs[0]), width(step.inputs[0])), step);
  }
  return backward_weights(Linear(plan.batch, width(step.inputs[0]), width(step.inputs[1])), step);
}

}  // namespace

base::Result<std::unique_ptr<Operator>> make_linear(const Plan& plan, const PlanStep& step) {
  try {
    return make(plan, step);
  } catch (const dnnl::error& error) {
    return base::Error{base::ErrorCode::kInternal, "layer " + step.layer + ": oneDNN cannot make " +
                                                       op_name(step.op) + " for a batch of " +
                                                       std::to_string(plan.batch) + ": " + error.what()};
  }
}

}  // namespace evenkeel::trainer
