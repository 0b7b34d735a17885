// The memory traffic and the operations of the steps of real plans.
#include <doctest/doctest.h>

#include "driver/compile/plan_summary.h"
#include "driver/generate/decoder.h"
#include "driver/profile/costs.h"
#include "driver/ready_plan.h"
#include "driver/step_class.h"
#include "ir/text.h"

namespace sinter::profile_costs_test {
namespace {

struct Plan {
  ModelSpec spec;
  std::shared_ptr<const Program> program;
};

Plan plan_of(const std::string& path) {
  const auto model = load_model(path);
  REQUIRE(model);
  auto frozen = freeze(model->module, {});
  REQUIRE(frozen);
  const auto compiled = compile(std::move(*frozen), {});
  REQUIRE(compiled);
  return {*model->spec, compiled->program};
}

std::vector<int64_t> sizes_with(const Program& program,
                                std::initializer_list<std::pair<const char*, int64_t>> given) {
  std::vector<int64_t> sizes = usual_sizes(program.symbols);
  for (const auto& [name, value] : given) {
    const int symbol = find_symbol(program.symbols, name);
    REQUIRE(symbol >= 0);
    sizes[static_cast<size_t>(symbol)] = value;
  }
  return sizes;
}

double bytes_of(const Program& program, const EntryPlan& entry, const std::vector<int64_t>& sizes,
                int64_t visible_rows) {
  double total = 0;
  const StepCosts costs(program, sizes, {visible_rows, 1});
  for (const Step& step : entry.steps) total += costs.of(entry, step).bytes();
  return total;
}

TEST_CASE("reads and writes are the traffic of steps where the whole cache is seen") {
  const Plan plan = plan_of(SINTER_SAMPLES_DIR "/llama-2-7b.json");
  const std::vector<int64_t> sizes = sizes_with(*plan.program, {{"R", 2048}});
  const StepCosts costs(*plan.program, sizes, {});
  const StepTraffic traffic(*plan.program, sizes);
  for (const EntryPlan& entry : plan.program->entries)
    for (const Step& step : entry.steps) {
      const StepCost cost = costs.of(entry, step);
      CHECK(cost.bytes() == doctest::Approx(traffic.of(entry, step).total()));
      CHECK(cost.written_bytes > 0);
      CHECK(cost.read_bytes >= 0);
    }
}

TEST_CASE("of a cache, decoding reads the rows that its token sees") {
  const Plan plan = plan_of(SINTER_SAMPLES_DIR "/llama-2-7b.json");
  const EntryPlan& decode = *plan.program->find_entry("decode");
  const std::vector<int64_t> sizes = sizes_with(*plan.program, {{"R", 2048}, {"B", 1}});
  // Keys and values of every layer, two bytes each.
  const double row =
      2.0 * 2.0 * static_cast<double>(plan.spec.layers * plan.spec.kv_heads * plan.spec.head_dim);
  const double all = bytes_of(*plan.program, decode, sizes, 2048);
  CHECK(all - bytes_of(*plan.program, decode, sizes, 1025) == doctest::Approx(row * (2048 - 1025)));
  CHECK(all == doctest::Approx(bytes_of(*plan.program, decode, sizes, INT64_MAX)));
}

TEST_CASE("each of several sequences sees rows of its own") {
  const Plan plan = plan_of(SINTER_SAMPLES_DIR "/llama-2-7b.json");
  const EntryPlan& decode = *plan.program->find_entry("decode");
  const std::vector<int64_t> sizes = sizes_with(*plan.program, {{"R", 4096}, {"B", 8}});
  const auto bytes = [&](VisibleRows visible) {
    double total = 0;
    const StepCosts costs(*plan.program, sizes, visible);
    for (const Step& step : decode.steps) total += costs.of(decode, step).bytes();
    return total;
  };
  const double row =
      2.0 * 2.0 * static_cast<double>(plan.spec.layers * plan.spec.kv_heads * plan.spec.head_dim);
  CHECK(bytes({100, 8}) - bytes({100, 1}) == doctest::Approx(row * 700));
  CHECK(bytes({1000, 8}) == doctest::Approx(bytes({4096, 1})));  // no more than there are
}

TEST_CASE("operations are two for each multiplication of the contractions") {
  const Plan plan = plan_of(SINTER_SAMPLES_DIR "/llama-2-7b.json");
  const ModelSpec& spec = plan.spec;
  const EntryPlan& decode = *plan.program->find_entry("decode");
  const std::vector<int64_t> sizes = sizes_with(*plan.program, {{"R", 2048}, {"B", 1}});
  double flops = 0;
  for (const Step& step : decode.steps)
    flops += StepCosts(*plan.program, sizes, {1025, 1}).of(decode, step).flops;
  const int64_t width = spec.heads * spec.head_dim;
  const int64_t block = 4 * spec.hidden * width + 3 * spec.hidden * spec.ffn;
  const int64_t attention = 2 * 1025 * width;
  CHECK(flops == doctest::Approx(2.0 * static_cast<double>(spec.layers * (block + attention) +
                                                           spec.hidden * spec.vocabulary)));
}

TEST_CASE("steps are called by their kernel or their product") {
  const Plan plan = plan_of(SINTER_SAMPLES_DIR "/llama-2-7b.json");
  const EntryPlan& prefill = *plan.program->find_entry("prefill");
  const std::vector<int64_t> sizes = sizes_with(*plan.program, {{"N", 16}, {"M", 1}});
  size_t kernels = 0, products = 0;
  for (const Step& step : prefill.steps) {
    const std::string title = step_title(*plan.program, prefill, step, sizes);
    if (const Kernel* kernel = step_facts(*plan.program, step).kernel) {
      ++kernels;
      CHECK(title == kernel->name);
    } else {
      products += title == "gemm 1x32000x4096 f16";
    }
  }
  CHECK(kernels > 0);
  CHECK(products == 1);
}

/// The class of each kernel of a module's only entry, by the values that it computes.
std::map<std::string, StepClass> classes_of(const std::string& text) {
  const auto module = parse_module(text, "test");
  REQUIRE(module);
  const auto compiled = compile(*module, {});
  REQUIRE(compiled);
  std::map<std::string, StepClass> classes;
  for (const Step& step : compiled->program->entries.front().steps)
    for (const std::string& value : step.values)
      classes[value] = step_class(*compiled->program, step);
  return classes;
}

TEST_CASE("steps of a training step have the classes of their work") {
  const auto of = [](const char* value, const std::string& parameters, const std::string& body) {
    return classes_of(fmt::format("module @step {{\n  entry @main({}) -> (%{}) {{\n{}  }}\n}}\n",
                                  parameters, value, body))[value];
  };
  const std::string x = "%x: bf16[128, 64]";
  CHECK(of("norm", x, "    %norm = softmax %x : bf16[128, 64]\n") == StepClass::norms);
  CHECK(of("product", x + ", %w: bf16[64, 64]", "    %product = linear %x, %w : bf16[128, 64]\n") ==
        StepClass::products);
  CHECK(of("rows", "%table: bf16[9, 64], %ids: i32[128]",
           "    %rows = embedding %table, %ids : bf16[128, 64]\n") == StepClass::copies);
  const std::string gelu =
      "    %act = gelu_tanh %x : bf16[128, 64]\n    %dx = mul %act, %dy : bf16[128, 64]\n";
  CHECK(of("dx", x + ", %dy: bf16[128, 64]", gelu) == StepClass::activations);
  CHECK(of("bias", x + ", %dy: bf16[128, 64]",
           gelu + "    %bias = reduce_sum %dx {axes = [0]} : bf16[1, 64]\n") ==
        StepClass::activations);
  CHECK(of("loss", x + ", %labels: i32[128, 1]", R"(
    %xf = cast %x : f32[128, 64]
    %max = reduce_max %xf {axes = [1]} : f32[128, 1]
    %y = sub %xf, %max : f32[128, 64]
    %e = exp %y : f32[128, 64]
    %all = reduce_sum %e {axes = [1]} : f32[128, 1]
    %log = log %all : f32[128, 1]
    %at = iota {axis = 1, dims = [128, 64]} : i32[128, 64]
    %hit = equal %at, %labels : i1[128, 64]
    %zero = constant {value = 0x0p+0} : f32[]
    %one = where %hit, %y, %zero : f32[128, 64]
    %own = reduce_sum %one {axes = [1]} : f32[128, 1]
    %loss = sub %log, %own : f32[128, 1]
)") == StepClass::loss);
  CHECK(of("new", "%p: f32[64, 64], %g: f32[64, 64]", R"(
    %g2 = mul %g, %g : f32[64, 64]
    %root = sqrt %g2 : f32[64, 64]
    %step = div %g, %root : f32[64, 64]
    %new = sub %p, %step : f32[64, 64]
)") == StepClass::optimizer);
}

}  // namespace
}  // namespace sinter::profile_costs_test
