// Kernels of cumulative_sum compute what the host evaluator computes, bit for bit: over lengths,
// axes, element types and forms of kernels. The kernel text runs on the CPU.
#include <doctest/doctest.h>

#include <random>

#include "codegen/kernel_trials.h"
#include "codegen/scan_groups.h"
#include "kernels/library.h"
#include "support/nvrtc.h"

namespace sinter::scan_kernels_test {
namespace {

DeviceDescription device(std::string_view arch = "sm_90a") { return *find_device(arch); }

/// Whole numbers of all 32 bits, whose sums wrap around.
void widen_integers(const Kernel& kernel, llvm::ArrayRef<int64_t>,
                    std::vector<HostTensor>& inputs) {
  std::mt19937 random(static_cast<uint32_t>(kernel.source.size()));
  for (HostTensor& input : inputs)
    if (input.dtype == DType::i32)
      for (int64_t i = 0; i < input.volume(); ++i)
        input.data<int32_t>()[i] = static_cast<int32_t>(random());
}

void add(Trials& trials, const ScanGroup& group, DType dtype,
         const DeviceDescription& on = device()) {
  trials.add(group.view(), dtype, 0, on);
}

bool has_text(const Trials& trials, std::string_view text) {
  return llvm::any_of(trials.kernels, [&](const Kernel& kernel) {
    return kernel.source.find(text) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("running sums of rows of every length") {
  Trials trials;
  int form = 0;
  for (int64_t n : {1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 4095, 4096, 4097}) {
    for (DType dtype : kSummed) add(trials, scan_group(fmt::format("N, {}", n), 1, form++), dtype);
    ++form;
  }
  run_trials(trials, {{5, 0, 0, 0}}, widen_integers);
}

TEST_CASE("running sums along other axes") {
  Trials trials;
  int form = 0;
  for (int64_t n : {1, 7, 8, 9, 33, 255, 257, 4097}) {
    for (DType dtype : kSummed) {
      const bool outer = form % 3 == 0;
      const std::string dims = outer ? fmt::format("{}, 70", n) : fmt::format("2, {}, B, 3", n);
      add(trials, scan_group(dims, outer ? 0 : 1, form++), dtype);
    }
    ++form;
  }
  run_trials(trials, {{0, 0, 0, 0, 2}}, widen_integers);
}

TEST_CASE("running sums along axes whose length is a symbol") {
  Trials trials;
  int form = 0;
  for (DType dtype : kSummed) {
    add(trials, scan_group("M, K", 1, form), dtype);
    add(trials, scan_group("K", 0, form + 1), dtype);
    add(trials, scan_group("N, W", 1, form + 2), dtype);
    add(trials, scan_group("K, W", 0, form + 3), dtype);
    add(trials, scan_group("B, N, 3", 1, form++), dtype);
  }
  run_trials(trials, {{33, 2, 700, 40, 1}, {1, 1, 1, 0, 3}, {0, 0, 0, 0, 0}}, widen_integers);
}

TEST_CASE("running sums of few long rows, by blocks and by clusters of them") {
  Trials trials;
  int form = 0;
  for (DType dtype : kSummed) {
    add(trials, scan_group("2, 20000", 1, form), dtype);
    add(trials, scan_group("140, 2049", 1, form + 1), dtype);
    add(trials, scan_group(form % 2 == 0 ? "140001" : "140000", 0, form + 2), dtype);
    ++form;
  }
  add(trials, scan_group("140000", 0, 1), DType::bf16, device("sm_80"));
  add(trials, scan_group("1048576", 0, 0), DType::f16);
  add(trials, scan_group("1, 1048575", 1, 3), DType::i32);
  trials.special_values = false;
  CHECK(has_text(trials, "kWarps = 16, kGroups = 4, kThreads = 512, kSegments = 1"));
  CHECK(has_text(trials, "kWarps = 16, kGroups = 4, kThreads = 512, kSegments = 8"));
  CHECK(has_text(trials, "kWarps = 16, kGroups = 2, kThreads = 512, kSegments = 1"));
  run_trials(trials, {{0, 0, 0, 0}}, widen_integers);
}

TEST_CASE("running sums read through views") {
  Trials trials;
  for (const GroupText& group : kScanViews)
    for (DType dtype : kSummed) trials.add(group, dtype, 0, device());
  run_trials(trials, {{40, 0, 0, 0}, {0, 0, 0, 0}}, widen_integers);
}

TEST_CASE("kernels of running sums compile" * doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    Trials trials;
    for (DType dtype : kSummed) {
      int form = 0;
      for (const auto& [dims, axis] : {std::pair<const char*, int>{"8192, 4096", 1},
                                       {"8192, 4095", 1},
                                       {"N, 40", 1},
                                       {"300, 5001", 1},
                                       {"1048576", 0},
                                       {"4096, 8192", 0},
                                       {"N, 9, 5", 1}})
        add(trials, scan_group(dims, axis, form++), dtype, device(arch));
    }
    std::vector<KernelSource> sources;
    for (const Kernel& kernel : trials.kernels) sources.push_back({kernel.name, kernel.source});
    const auto cubins = compile_kernels(*nvrtc, sources, kernel_library(), arch);
    CHECK_MESSAGE(cubins.has_value(), (cubins ? "" : cubins.error().what));
  }
}

}  // namespace sinter::scan_kernels_test
