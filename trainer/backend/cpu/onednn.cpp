#include "trainer/backend/cpu/onednn.h"

namespace evenkeel::trainer {

using dnnl::memory;

dnnl::engine& onednn_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr onednn_attributes(bool relu) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (relu) {
    dnnl::post_ops after;
    after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attr.set_post_ops(after);
  }
  return attr;
}

OneDnnOperator::Place& OneDnnOperator::add(int argument, const memory::desc& plan, const memory::desc& wanted,
                                           TensorId tensor, std::vector<Place>& places) {
  Place& place = places.emplace_back();
  place.argument = argument;
  place.tensor = tensor;
  place.staged = plan != wanted;
  main_.arguments[argument] = memory(wanted, onednn_engine(), nullptr);
  if (!place.staged) return place;
  place.staged_at = staged_bytes_;
  staged_bytes_ += align_up(wanted.get_size());
  return place;
}

namespace {

dnnl::reorder::primitive_desc reorder_of(const memory::desc& from, const memory::desc& to) {
  return {onednn_engine(), from, onednn_engine(), to};
}

}  // namespace

void OneDnnOperator::add_input(int argument, const memory::desc& plan, const memory::desc& wanted,
                               TensorId tensor) {
  Place& place = add(argument, plan, wanted, tensor, inputs_);
  if (!place.staged) return;
  place.reorder.primitive = dnnl::reorder(reorder_of(plan, wanted));
  place.reorder.arguments[DNNL_ARG_FROM] = memory(plan, onednn_engine(), nullptr);
  place.reorder.arguments[DNNL_ARG_TO] = memory(wanted, onednn_engine(), nullptr);
}

void OneDnnOperator::add_output(int argument, const memory::desc& plan, const memory::desc& wanted,
                                TensorId tensor) {
  Place& place = add(argument, plan, wanted, tensor, outputs_);
  if (!place.staged) return;
  place.reorder.primitive = dnnl::reorder(reorder_of(wanted, plan));
  place.reorder.arguments[DNNL_ARG_FROM] = memory(wanted, onednn_engine(), nullptr);
  place.reorder.arguments[DNNL_ARG_TO] = memory(plan, onednn_engine(), nullptr);
}

void OneDnnOperator::bind(const TensorAddresses& addresses) {
  std::byte* scratch = workspace_bytes() == 0 ? nullptr : addresses.workspace;
  main_.arguments[DNNL_ARG_SCRATCHPAD].set_data_handle(scratch_bytes_ == 0 ? nullptr : scratch);
  const auto bind_place = [&](Place& place, int in_plan, int in_primitive) {
    void* own = addresses.at(place.tensor);
    if (!place.staged) {
      main_.arguments[place.argument].set_data_handle(own);
      return;
    }
    std::byte* staged = scratch + scratch_bytes_ + place.staged_at;
    place.reorder.arguments[in_plan].set_data_handle(own);
    place.reorder.arguments[in_primitive].set_data_handle(staged);
    main_.arguments[place.argument].set_data_handle(staged);
  };
  for (Place& place : inputs_) bind_place(place, DNNL_ARG_FROM, DNNL_ARG_TO);
  for (Place& place : outputs_) bind_place(place, DNNL_ARG_TO, DNNL_ARG_FROM);
}

void OneDnnOperator::run(RunContext&) noexcept {
  for (const Place& place : inputs_) {
    if (place.staged) place.reorder.primitive.execute(stream_, place.reorder.arguments);
  }
  main_.primitive.execute(stream_, main_.arguments);
  for (const Place& place : outputs_) {
    if (place.staged) place.reorder.primitive.execute(stream_, place.reorder.arguments);
  }
}

std::string OneDnnOperator::kernel() const {
  int reorders = 0;
  for (const Place& place : inputs_) reorders += place.staged;
  for (const Place& place : outputs_) reorders += place.staged;
  return reorders == 0 ? kernel_ : kernel_ + " +" + std::to_string(reorders) + " reorders";
}

}  // namespace evenkeel::trainer
