// Kernels of rows that sum down their columns compute what the host evaluator computes, bit for
// bit, whatever the number of threads of a row. The kernel text runs on the CPU.
#include <doctest/doctest.h>

#include "codegen/kernel_trials.h"
#include "ir/builder.h"
#include "ir/column_runs.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/random_inputs.h"
#include "shim/kernel_shim.h"

namespace sinter::run_sums_kernels_test {
namespace {

/// Devices on which a row has a warp where it can, and on which it has more, for want of registers.
std::vector<DeviceDescription> devices() {
  const DeviceDescription whole = *find_device("sm_90a"), old = *find_device("sm_80");
  DeviceDescription few = whole;
  few.registers_per_block = 16 * 1024;
  return {whole, old, few};
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("sums of runs beside rows of every width") {
  constexpr int64_t kWidths[] = {8, 72, 768, 1152};
  Trials trials;
  trials.every_order = false;
  size_t turn = 0;
  for (const GroupText& group : kRunGroups)
    for (int64_t width : kWidths) {
      if (&group == &kRunGroups.back() && width != 8) continue;  // its width is fixed
      trials.add(group, kFloats[turn % 3], width, devices()[turn % 3]);
      ++turn;
    }
  run_trials(trials, {{}});
}

TEST_CASE("a row has more threads where the registers of a warp are too few") {
  const std::vector<DeviceDescription> all = devices();
  const auto threads = [&](const DeviceDescription& device, int64_t width) {
    const auto kernel = emit_kernel(make_group(kRunGroups[1], DType::bf16, width),
                                    kRunGroups[1].parts(), group_symbols(), device);
    REQUIRE(kernel.has_value());
    return kernel->launch.threads;
  };
  CHECK(threads(all[0], 768) == 4 * 32);
  CHECK(threads(all[2], 768) > 4 * 32);
  CHECK(threads(all[0], 4096) > 4 * 32);
}

TEST_CASE("rows in another order, and a lane that is left out, are found") {
  const auto kernel = emit_kernel(make_group(kRunGroups[0], DType::f32, 64), kRunGroups[0].parts(),
                                  group_symbols(), *find_device("sm_90a"));
  REQUIRE(kernel.has_value());
  std::vector<Kernel> kernels(3, *kernel);
  replace_all(kernels[1].source, "(lane, step)", "(lane, step ^ 1)");
  replace_all(kernels[2].source, ".take(e, ", ".take(e, lane == 3 ? 0.0f : ");
  for (size_t k = 1; k < kernels.size(); ++k) {
    REQUIRE(kernels[k].source != kernel->source);
    kernels[k].name = fmt::format("{}_{}", kernel->name, k);
    replace_all(kernels[k].source, kernel->name, kernels[k].name);
  }
  std::vector<const Kernel*> pointers;
  for (const Kernel& each : kernels) pointers.push_back(&each);
  const auto shim = KernelShim::compile(pointers, "");
  REQUIRE_MESSAGE(shim.has_value(), (shim ? "" : shim.error().what));
  const std::vector<int64_t> values(group_symbols().size(), 0);
  const auto inputs = random_inputs(kernel->group, group_symbols(), values, 1);
  REQUIRE(inputs.has_value());
  const std::vector<const HostTensor*> tensors{&inputs->at(0)};
  const auto equal = [&](const Kernel& each) {
    return check_kernel(*shim, each, group_symbols(), values, tensors).has_value();
  };
  CHECK(equal(kernels[0]));
  CHECK_FALSE(equal(kernels[1]));
  CHECK_FALSE(equal(kernels[2]));
}

TEST_CASE("runs and what joins them have the bits of a sum down columns") {
  // Heights of every kind: lanes without rows, with incomplete chunks, with several.
  for (int64_t rows : {2, 9, 100, 128, 8192, 8448, 16385}) {
    Graph graph;
    Builder b(graph, {});
    const ValueId x = b.leaf(OpKind::input, {DType::bf16, {Dim(rows), Dim(8)}}, "x");
    graph.inputs = {x};
    graph.outputs = {b.reduce(OpKind::reduce_sum, b.cast(x, DType::f32), {0})};
    const int64_t lanes = column_lanes(graph[x].type.dims);
    for (int64_t of_run = 1; of_run <= std::min(lanes, kMaxLanesOfRun); of_run *= 2) {
      const Dim runs(lanes / of_run);
      const ValueId parts =
          b.op(OpKind::run_sums, {x}, Attributes().set(AttrName::runs, lanes / of_run));
      const ValueId zeros = b.constant(0, DType::f32, {runs, Dim(kChunk - 1), Dim(8)});
      const ValueId padded =
          b.op(OpKind::concat, {parts, zeros}, Attributes().set(AttrName::axis, int64_t{1}));
      graph.outputs.push_back(
          b.reshape(b.reduce(OpKind::reduce_sum, padded, {0, 1}), {Dim(1), Dim(8)}));
    }
    auto inputs = random_inputs(graph, {}, {}, 3);
    REQUIRE(inputs.has_value());
    const HostTensor* const tensors[] = {&inputs->at(0)};
    const auto results = evaluate(graph, {}, {}, tensors);
    REQUIRE_MESSAGE(results.has_value(), (results ? "" : results.error().message()));
    for (const HostTensor& result : *results) CHECK(result.bytes == results->front().bytes);
  }
}

}  // namespace sinter::run_sums_kernels_test
