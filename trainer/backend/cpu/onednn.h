// oneDNN (API 2.x) as operators of a plan: a primitive with its arguments, reorders around it where it wants
// another layout than the plan's plain one, workspace for both. Private to linear.cpp and convolution.cpp: no
// other file knows oneDNN, and its exceptions end in them.
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/backend/cpu/operators.h"

namespace evenkeel::trainer {

dnnl::engine& onednn_engine();

// Scratchpad from us; max(0, .) at the end where asked.
dnnl::primitive_attr onednn_attributes(bool relu = false);

class OneDnnOperator : public Operator {
 public:
  template <class Descriptor>
  OneDnnOperator(const Descriptor& descriptor, dnnl::primitive primitive)
      : stream_(onednn_engine()), kernel_(descriptor.impl_info_str()) {
    main_.primitive = std::move(primitive);
    const dnnl::memory::desc scratch = descriptor.scratchpad_desc();
    scratch_bytes_ = align_up(scratch.get_size());
    main_.arguments[DNNL_ARG_SCRATCHPAD] = dnnl::memory(scratch, onednn_engine(), nullptr);
  }

  // `plan`: how the tensor lies in its arena; `wanted`: how the primitive takes it.
  void add_input(int argument, const dnnl::memory::desc& plan, const dnnl::memory::desc& wanted,
                 TensorId tensor);
  void add_output(int argument, const dnnl::memory::desc& plan, const dnnl::memory::desc& wanted,
                  TensorId tensor);

  void bind(const TensorAddresses& addresses) override;
  void run(RunContext&) noexcept override;
  std::uint64_t workspace_bytes() const override { return scratch_bytes_ + staged_bytes_; }
  std::string kernel() const override;

 private:
  struct Call {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };
  // A tensor in its own layout, and where it is staged in the layout that the primitive takes.
  struct Place {
    int argument = 0;
    TensorId tensor = kNoTensor;
    std::uint64_t staged_at = 0;  // in the workspace, behind the scratchpad
    bool staged = false;
    Call reorder;
  };

  Place& add(int argument, const dnnl::memory::desc& plan, const dnnl::memory::desc& wanted, TensorId tensor,
             std::vector<Place>& places);

  dnnl::stream stream_;
  std::string kernel_;
  Call main_;
  std::vector<Place> inputs_, outputs_;
  std::uint64_t scratch_bytes_ = 0;
  std::uint64_t staged_bytes_ = 0;
};

// Turns oneDNN's exception into an error that names layer, operator and batch.
template <class Make>
OperatorResult guarded(const Plan& plan, const PlanStep& step, const Make& make) {
  try {
    return std::unique_ptr<Operator>(make());
  } catch (const dnnl::error& error) {
    return base::Error{base::ErrorCode::kInternal, "layer " + step.layer + ": oneDNN cannot make " +
                                                       op_name(step.op) + " for a batch of " +
                                                       std::to_string(plan.batch) + ": " + error.what()};
  }
}

}  // namespace evenkeel::trainer
