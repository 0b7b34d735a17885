// The cost of a compilation grows with the module and hardly faster, from reading to the reports of
// the ledger and the plan's file: measured at a size and at four times that size, in blocks of code
// that run, allocations, bytes held and questions to the judge.
#include <doctest/doctest.h>

#include "driver/compile/compile.h"
#include "driver/explain/ledger.h"
#include "driver/growth_shapes.h"
#include "frontends/model/build_model.h"
#include "ir/text.h"
#include "plan/plan_file.h"
#include "support/allocations.h"
#include "support/blocks_run.h"
#include "support/result.h"

namespace sinter::test::growth_test {
namespace {

// Four, and room for logarithms and for the steps in which tables grow.
constexpr double kMaxGrowth = 4.6;

struct Cost {
  size_t blocks = 0, allocations = 0, bytes = 0, questions = 0;
};

/// Everything after reading.
void compile_and_report(Module module, Numerics numerics, Cost& cost) {
  CompileOptions options;
  options.fusion.numerics = numerics;
  Module frozen = value(freeze(std::move(module), {}));
  const Compiled compiled = value(compile(std::move(frozen), options));
  for (const Fusion& fusion : compiled.fusions) cost.questions += fusion.statistics.judged;
  size_t printed = 0;
  for (const EntryLedger& entry : ledger(compiled)) printed += ledger_text(entry, true).size();
  printed += ledger_json(compiled).size() + ledger_dot(compiled).size();
  PageParts without_kernels;  // which a page has where it stays small
  without_kernels.kernel_text = false;
  printed += ledger_html(compiled, {}, {}, without_kernels).size();
  CHECK(printed > 0);
  const Program read = value(read_plan(write_plan(*compiled.program)));
  CHECK(read.entries.size() == compiled.program->entries.size());
}

template <typename Run>
Cost measured(Run run) {
  Cost cost;
  reset_peak();
  const size_t before = blocks_run();
  run(cost);
  cost.blocks = blocks_run() - before;
  cost.allocations = allocations();
  cost.bytes = peak_bytes();
  return cost;
}

void check_growth(const Cost& small, const Cost& large) {
  const auto check = [](const std::string& what, size_t at_once, size_t at_four_times) {
    CAPTURE(what);
    CAPTURE(at_once);
    CAPTURE(at_four_times);
    CHECK(static_cast<double>(at_four_times) <= kMaxGrowth * static_cast<double>(at_once));
  };
  CHECK(small.blocks > 0);
  check("blocks of code", small.blocks, large.blocks);
  check("questions to the judge", small.questions, large.questions);
  if (!allocations_are_counted()) return;
  check("allocations", small.allocations, large.allocations);
  check("bytes held", small.bytes, large.bytes);
}

Cost cost_of(const Shape& shape, int n, Numerics numerics) {
  const std::string text = shape.text(n);
  return measured([&](Cost& cost) {
    compile_and_report(value(parse_module(text, shape.name)), numerics, cost);
  });
}

TEST_CASE("growth: modules in which something is repeated") {
  for (const Shape& shape : kShapes)
    for (Numerics numerics : {Numerics::strict, Numerics::fast}) {
      CAPTURE(std::string(shape.name));
      CAPTURE(to_string(numerics));
      cost_of(shape, 8, numerics);  // tables that are made once
      check_growth(cost_of(shape, 240, numerics), cost_of(shape, 960, numerics));
    }
}

TEST_CASE("growth: layers of a model") {
  const auto cost_of_layers = [](int64_t layers) {
    return measured([&](Cost& cost) {
      ModelSpec spec;
      spec.name = "deep";
      spec.dtype = DType::f16;
      spec.vocabulary = 512, spec.hidden = 256, spec.heads = 4, spec.kv_heads = 2;
      spec.head_dim = 64, spec.ffn = 512, spec.max_positions = 1024, spec.layers = layers;
      spec.norm = NormKind::rms_norm;
      spec.rope = Rope{.rotary = 64};
      spec.activation = OpKind::silu, spec.gated = true, spec.attention_scale = 0.125;
      Module module = value(build_model(spec, {WeightMap::identity(), {}}, nullptr, "deep"));
      compile_and_report(std::move(module), Numerics::strict, cost);
    });
  };
  cost_of_layers(1);
  check_growth(cost_of_layers(20), cost_of_layers(80));
}

}  // namespace
}  // namespace sinter::test::growth_test
