// Kernels of callers' ops compute what the host evaluation computes, bit for bit: alone, with a
// prologue and an epilogue. The kernel text runs on the CPU.
#include <doctest/doctest.h>

#include "codegen/custom_groups.h"
#include "codegen/kernel_trials.h"
#include "kernels/library.h"
#include "support/custom_ops.h"
#include "support/nvrtc.h"
#include "support/result.h"

namespace sinter::custom_kernels_test {
namespace {

Trials trials_on(std::string_view arch) {
  test::register_custom_ops();
  const DeviceDescription device = *find_device(arch);
  Trials trials;
  for (const GroupText& group : kCustomGroups)
    for (DType dtype : kFloats) trials.add(group, dtype, 0, device);
  return trials;
}

Kernel kernel_of(std::string_view name) {
  test::register_custom_ops();
  const auto group =
      llvm::find_if(kCustomGroups, [&](const GroupText& one) { return one.name == name; });
  return value(
      emit_kernel(make_group(*group, DType::f16, 0), 0, group_symbols(), *find_device("sm_90a")));
}

}  // namespace

TEST_CASE("callers' kernels with their neighbours") {
  run_trials(trials_on("sm_80"), {{5, 0, 0, 24}, {40, 0, 0, 8}, {0, 0, 0, 0}});
}

TEST_CASE("a kernel has the caller's text, threads and shared memory") {
  const Kernel rotate = kernel_of("rotate");
  CHECK(rotate.launch.threads == 64);
  CHECK(rotate.launch.shared_bytes == 4096);
  CHECK(rotate.launch.rows == SymExpr(Dim(SymbolId{0})));
  CHECK(rotate.source.find("#line 1 \"test.rotate\"\n" + find_custom_op("test.rotate")->source) !=
        std::string::npos);
  CHECK(kernel_of("above").launch.rows.is(1));
}

TEST_CASE("a block that the device does not have is refused by the op's name") {
  test::register_custom_ops();
  CustomOp large = *find_custom_op("test.rotate");
  large.name = "test.large_rotate";
  large.shared_bytes = 200 * 1024;
  require(register_custom_op(large));
  const GroupText group{"large", 0, R"(
graph(%x: DTYPE[N, 100]) -> (%y) {
  %y = custom %x {op = "test.large_rotate"} : DTYPE[N, 100]
})"};
  const auto made = [&](std::string_view arch) {
    return emit_kernel(make_group(group, DType::f16, 0), 0, group_symbols(), *find_device(arch));
  };
  CHECK(made("sm_90a").has_value());
  const auto refused = made("sm_80");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message() ==
        "custom op test.large_rotate: 64 threads and 204800 bytes of shared memory in a block, "
        "sm_80 has 1024 and 166912; register it with smaller blocks");
}

TEST_CASE("callers' kernels compile" * doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Trials trials = trials_on(arch);
    std::vector<KernelSource> sources;
    for (const Kernel& kernel : trials.kernels) sources.push_back({kernel.name, kernel.source});
    const auto cubins = compile_kernels(*nvrtc, sources, kernel_library(), arch);
    CHECK_MESSAGE(cubins.has_value(), (cubins ? "" : cubins.error().what));
  }
}

TEST_CASE("an error in a caller's text names the op and the line" * doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  test::register_custom_ops();
  CustomOp wrong = *find_custom_op("test.rotate");
  wrong.name = "test.wrong_rotate";
  wrong.source = "\n\n#error mistake\n" + wrong.source;
  require(register_custom_op(wrong));
  const GroupText group{"wrong", 0, R"(
graph(%x: DTYPE[N, 100]) -> (%y) {
  %y = custom %x {op = "test.wrong_rotate"} : DTYPE[N, 100]
})"};
  const Kernel kernel = value(
      emit_kernel(make_group(group, DType::f16, 0), 0, group_symbols(), *find_device("sm_90a")));
  const auto cubins =
      compile_kernels(*nvrtc, {{kernel.name, kernel.source}}, kernel_library(), "sm_90a");
  REQUIRE_FALSE(cubins.has_value());
  CHECK_MESSAGE(cubins.error().message().find("test.wrong_rotate(3)") != std::string::npos,
                cubins.error().message());
}

}  // namespace sinter::custom_kernels_test
