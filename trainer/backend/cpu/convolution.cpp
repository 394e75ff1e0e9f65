// Convolution, its backward by data and by weights. Images are (N, H, W, C) and kernels (h, w, in / groups,
// out) wherever the plan sees them; kernels are brought into oneDNN's blocked layout each step, in the
// workspace. Images stay as they are, but where oneDNN would fall back to its reference loops (a hundred
// times slower), they are brought into the layout that it asks for.
#include "trainer/backend/cpu/onednn.h"

namespace evenkeel::trainer {
namespace {

using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;
using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;

// How images are given to oneDNN: as they lie in the plan, or as it likes best (then with reorders around).
enum class Images { kPlain, kAny };

memory::desc with_any_layout(const memory::desc& desc) {
  return {desc.dims(), desc.data_type(), Tag::any};
}

// One convolution as oneDNN describes it: logical dimensions are channels first, whatever lies in memory.
struct Convolution {
  memory::desc x, kernel, bias, y;  // as they lie in the plan
  Dims strides, dilation, pad_low, pad_high;

  Convolution(const Plan& plan, const PlanStep& step, TensorId x_id, TensorId kernel_id, TensorId y_id) {
    const Shape& in = tensor_of(plan, x_id).shape;
    const Shape& k = tensor_of(plan, kernel_id).shape;
    const Shape& out = tensor_of(plan, y_id).shape;
    const Window& w = step.attributes.window;
    const std::int64_t groups = step.attributes.groups;
    x = memory::desc({in[0], in[3], in[1], in[2]}, memory::data_type::f32, Tag::nhwc);
    y = memory::desc({out[0], out[3], out[1], out[2]}, memory::data_type::f32, Tag::nhwc);
    bias = memory::desc({out[3]}, memory::data_type::f32, Tag::a);
    // (h, w, in, out) with `out` counted group after group.
    const std::int64_t per_group = k[3] / groups;
    kernel = groups == 1 ? memory::desc({k[3], k[2], k[0], k[1]}, memory::data_type::f32, Tag::hwio)
                         : memory::desc({groups, per_group, k[2], k[0], k[1]}, memory::data_type::f32,
                                        Dims{per_group, 1, k[3], k[1] * k[2] * k[3], k[2] * k[3]});
    strides = {w.stride_h, w.stride_w};
    dilation = {w.dilation_h - 1, w.dilation_w - 1};  // oneDNN counts the points left out
    pad_low = {w.pad_top, w.pad_left};
    pad_high = {w.pad_bottom, w.pad_right};
  }

  memory::desc image(const memory::desc& desc, Images images) const {
    return images == Images::kPlain ? desc : with_any_layout(desc);
  }

  convolution_forward::primitive_desc forward(Images images, bool with_bias, bool relu) const {
    const auto kind = dnnl::prop_kind::forward_training;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const memory::desc weights = with_any_layout(kernel);
    const auto desc = with_bias
                          ? convolution_forward::desc(kind, algorithm, image(x, images), weights, bias,
                                                      image(y, images), strides, dilation, pad_low, pad_high)
                          : convolution_forward::desc(kind, algorithm, image(x, images), weights,
                                                      image(y, images), strides, dilation, pad_low, pad_high);
    return {desc, onednn_attributes(relu), onednn_engine()};
  }

  convolution_backward_data::primitive_desc backward_data(Images images) const {
    const auto desc = convolution_backward_data::desc(dnnl::algorithm::convolution_direct, image(x, images),
                                                      with_any_layout(kernel), image(y, images), strides,
                                                      dilation, pad_low, pad_high);
    return {desc, onednn_attributes(), onednn_engine(), forward(images, false, false)};
  }

  convolution_backward_weights::primitive_desc backward_weights(Images images, bool with_bias) const {
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const memory::desc weights = with_any_layout(kernel);
    const auto desc =
        with_bias ? convolution_backward_weights::desc(algorithm, image(x, images), weights, bias,
                                                       image(y, images), strides, dilation, pad_low, pad_high)
                  : convolution_backward_weights::desc(algorithm, image(x, images), weights, image(y, images),
                                                       strides, dilation, pad_low, pad_high);
    return {desc, onednn_attributes(), onednn_engine(), forward(images, with_bias, false)};
  }
};

// The plain layout where oneDNN has a fast kernel for it, else the layout it chooses itself.
template <class Describe>
auto fastest(const Describe& describe) {
  const auto is_reference = [](const std::string& name) { return name.rfind("ref", 0) == 0; };
  auto plain = describe(Images::kPlain);
  if (!is_reference(plain.impl_info_str())) return plain;
  auto any = describe(Images::kAny);
  return is_reference(any.impl_info_str()) ? plain : any;
}

std::unique_ptr<Operator> forward(const Plan& plan, const PlanStep& step) {
  const Convolution c(plan, step, step.inputs[0], step.inputs[1], step.outputs[0]);
  const bool bias = step.inputs.size() > 2;
  const auto d = fastest([&](Images images) { return c.forward(images, bias, step.attributes.relu); });
  auto op = std::make_unique<OneDnnOperator>(d, convolution_forward(d));
  op->add_input(DNNL_ARG_SRC, c.x, d.src_desc(), step.inputs[0]);
  op->add_input(DNNL_ARG_WEIGHTS, c.kernel, d.weights_desc(), step.inputs[1]);
  if (bias) op->add_input(DNNL_ARG_BIAS, c.bias, d.bias_desc(), step.inputs[2]);
  op->add_output(DNNL_ARG_DST, c.y, d.dst_desc(), step.outputs[0]);
  return op;
}

std::unique_ptr<Operator> backward_data(const Plan& plan, const PlanStep& step) {
  const Convolution c(plan, step, step.outputs[0], step.inputs[1], step.inputs[0]);
  const auto d = fastest([&](Images images) { return c.backward_data(images); });
  auto op = std::make_unique<OneDnnOperator>(d, convolution_backward_data(d));
  op->add_input(DNNL_ARG_DIFF_DST, c.y, d.diff_dst_desc(), step.inputs[0]);
  op->add_input(DNNL_ARG_WEIGHTS, c.kernel, d.weights_desc(), step.inputs[1]);
  op->add_output(DNNL_ARG_DIFF_SRC, c.x, d.diff_src_desc(), step.outputs[0]);
  return op;
}

std::unique_ptr<Operator> backward_weights(const Plan& plan, const PlanStep& step) {
  const Convolution c(plan, step, step.inputs[0], step.outputs[0], step.inputs[1]);
  const bool bias = step.outputs.size() > 1;
  const auto d = fastest([&](Images images) { return c.backward_weights(images, bias); });
  auto op = std::make_unique<OneDnnOperator>(d, convolution_backward_weights(d));
  op->add_input(DNNL_ARG_SRC, c.x, d.src_desc(), step.inputs[0]);
  op->add_input(DNNL_ARG_DIFF_DST, c.y, d.diff_dst_desc(), step.inputs[1]);
  op->add_output(DNNL_ARG_DIFF_WEIGHTS, c.kernel, d.diff_weights_desc(), step.outputs[0]);
  if (bias) op->add_output(DNNL_ARG_DIFF_BIAS, c.bias, d.diff_bias_desc(), step.outputs[1]);
  return op;
}

}  // namespace

OperatorResult make_convolution(const Plan& plan, const PlanStep& step) {
  return guarded(plan, step, [&] {
    if (step.op == OpKind::kConv2d) return forward(plan, step);
    return step.op == OpKind::kConv2dBackwardData ? backward_data(plan, step) : backward_weights(plan, step);
  });
}

}  // namespace evenkeel::trainer
