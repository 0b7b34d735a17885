// Kernels of scatter_add compute what the host evaluator computes, bit for bit: over numbers of
// rows, of updates and of columns, and where lists of updates are too short. The kernel text runs
// on the CPU.
#include <doctest/doctest.h>

#include <random>

#include "codegen/emission/config_text.h"
#include "codegen/kernel_trials.h"
#include "codegen/scatter_groups.h"
#include "kernels/library.h"
#include "kernels/scatter/layout.h"
#include "support/nvrtc.h"

namespace sinter::scatter_kernels_test {
namespace {

const Op& scatter_of(const Kernel& kernel) {
  return *llvm::find_if(kernel.group.ops(),
                        [](const Op& op) { return op.kind == OpKind::scatter_add; });
}

/// Numbers of rows of all sorts: rows that many updates name, and where the op is checked numbers
/// that name none.
InputEditor rows_by(int turn) {
  return [=](const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
             std::vector<HostTensor>& inputs) {
    const Op& op = scatter_of(kernel);
    const Dim dim = op.type.dims[0];
    const int64_t rows = dim.is_constant() ? dim.constant() : symbol_values[dim.symbol().index];
    std::mt19937 random(static_cast<uint32_t>(turn));
    const bool checked = op.attrs.has(AttrName::checked);
    for (int64_t i = 0; i < inputs[0].volume(); ++i) {
      int32_t& number = inputs[0].data<int32_t>()[i];
      const uint32_t kind = random() % 16;
      if (checked && (kind == 0 || rows == 0))
        number =
            kind % 2 != 0 ? static_cast<int32_t>(rows) : INT32_MIN + static_cast<int32_t>(kind);
      else
        number = static_cast<int32_t>(kind < 8 ? random() % rows : kind < 15 ? turn % rows : 0);
    }
  };
}

bool has_config(const Trials& trials, int rows, int groups) {
  const ConfigText config = ConfigText().constant("kRows", rows).constant("kGroups", groups);
  return llvm::any_of(trials.kernels, [&](const Kernel& kernel) {
    return kernel.source.find(config.members()) != std::string::npos;
  });
}

Trials all_groups() {
  Trials trials;
  for (const GroupText& group : kScatterGroups)
    for (DType dtype : kFloats) trials.add(group, dtype, 0, *find_device("sm_90a"));
  return trials;
}

}  // namespace

TEST_CASE("a row is the sum of its updates in ascending order, whatever they are") {
  const Trials trials = all_groups();
  CHECK(has_config(trials, 1, 3));
  CHECK(has_config(trials, 8, 1));
  CHECK(has_config(trials, 64, 1));
  std::vector<std::vector<int64_t>> sizes = {
      {300, 0, 70, 24}, {37, 0, 1, 8}, {1, 0, 1, 8}, {0, 0, 0, 0}};
  const size_t distinct = sizes.size();
  for (size_t i = 0; i < distinct; ++i) sizes.push_back(sizes[i]);
  // Calls of each kernel, one for each row of sizes; the second half has other row numbers.
  size_t calls = 0;
  run_trials(trials, sizes,
             [&](const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
                 std::vector<HostTensor>& inputs) {
               const bool again = calls++ % (2 * distinct) >= distinct;
               rows_by(again ? 2 : 1)(kernel, symbol_values, inputs);
             });
}

TEST_CASE("a block walks the index where its updates are more than it lists") {
  Trials trials;
  trials.special_values = false;
  static_assert(8192 / kScatterWarps > kScatterListed,
                "every warp's part is too long for its list");
  for (DType dtype : {DType::f32, DType::bf16})
    trials.add({"scatter_of_very_many", 0, R"(
graph(%i: i32[8192], %u: DTYPE[8192, 8]) -> (%y) {
  %y = scatter_add %i, %u {rows = 2, checked = 1} : DTYPE[2, 8]
})"},
               dtype, 0, *find_device("sm_90a"));
  run_trials(trials, {{0, 0, 0, 0}}, rows_by(1));
}

TEST_CASE("kernels of scatter_add compile" * doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    Trials trials;
    for (const GroupText& group : kScatterGroups)
      for (DType dtype : kFloats) trials.add(group, dtype, 0, *find_device(arch));
    std::vector<KernelSource> sources;
    for (const Kernel& kernel : trials.kernels) sources.push_back({kernel.name, kernel.source});
    const auto cubins = compile_kernels(*nvrtc, sources, kernel_library(), arch);
    CHECK_MESSAGE(cubins.has_value(), (cubins ? "" : cubins.error().what));
  }
}

}  // namespace sinter::scatter_kernels_test
