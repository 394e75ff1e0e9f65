// Fuzz target: model.layers as JSON, through the schema, the builder and the compiler of plans.
#include <cstdint>

#include "contract/job/validate.h"
#include "tests/fuzz/check.h"
#include "trainer/graph/plan.h"
#include "trainer/model/model.h"

namespace {

using namespace evenkeel;  // NOLINT: a program of its own

void build(const contract::ModelSpec& model, const trainer::Shape& sample) {
  const int classes = trainer::output_classes(model);
  const auto graph = trainer::build_model(model, sample, classes > 0 ? classes : 10);
  if (!graph.ok()) {
    fuzz_check(!graph.error().message.empty(), "a refusal has a reason");
    return;
  }
  for (const trainer::PlanMode mode : {trainer::PlanMode::kTraining, trainer::PlanMode::kEvaluation}) {
    const auto plan = trainer::compile_plan(*graph, 3, mode, {});
    if (!plan.ok()) continue;
    fuzz_check(plan->parameter_count() >= 0, "the number of parameters did not overflow");
    fuzz_check(plan->total_bytes() >= plan->arena_bytes[0], "the sizes of the arenas did not overflow");
    fuzz_check(!trainer::to_text(*plan).empty(), "a plan prints itself");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto layers = base::parse_json({reinterpret_cast<const char*>(data), size});
  if (!layers.ok()) return 0;
  const base::Json spec = {{"workers", {{"replicas", 1}}},
                           {"model", {{"layers", *layers}}},
                           {"dataset", {{"format", "idx"}, {"path", "/data"}}},
                           {"training", {{"batchSize", {{"global", 4}}}, {"epochs", 1}}}};
  const auto decoded = contract::decode_spec(spec);
  if (!decoded.ok()) return 0;
  for (const trainer::Shape& sample :
       {trainer::Shape{28, 28, 1}, trainer::Shape{32, 31, 3}, trainer::Shape{7}})
    build(decoded->model, sample);
  return 0;
}
