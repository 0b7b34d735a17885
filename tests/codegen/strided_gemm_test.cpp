// The kernel for matrix products with any strides: its text on the CPU against a plain loop, bit
// for bit, and through NVRTC.
#include "runtime/cuda/strided_gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "kernels/library.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/gemm_case.h"
#include "shim/guarded_memory.h"
#include "shim/shim_module.h"

namespace sinter::strided_gemm_test {
namespace {

GemmProblem typed(DType a, DType b, DType c, std::optional<DType> bias) {
  GemmProblem problem;
  problem.a.dtype = a, problem.b.dtype = b, problem.c.dtype = c;
  if (bias) problem.bias = GemmProblem::Bias{*bias, 16};
  return problem;
}

/// The definition of the kernel's result.
GemmCase::Buffer expected_result(const GemmCase& test) {
  GemmCase::Buffer c = test.c;
  test.for_each([&](const GemmCase::Element& e) {
    float sum = 0;
    for (size_t p = 0; p < e.a.size(); ++p) sum = std::fma(e.a[p], e.b[p], sum);
    if (test.step.bias >= 0) sum += e.bias;
    if (test.step.residual >= 0) sum += e.residual;
    write_element(c, e.index, activated(test.step.activation, sum));
  });
  return c;
}

/// A buffer's bytes in memory whose surroundings tell of accesses.
GuardedMemory guarded(const GemmCase::Buffer& buffer) {
  GuardedMemory memory(buffer.bytes.size(), kNanPoison);
  std::memcpy(memory.data(), buffer.bytes.data(), buffer.bytes.size());
  return memory;
}
CudaAddress address(const GuardedMemory& memory) {
  return reinterpret_cast<CudaAddress>(memory.data());
}

/// Runs the case at all its places; c's bytes afterwards.
std::vector<std::byte> run(const ShimModule& module, const GemmCase& test, ThreadOrder order) {
  const GuardedMemory a = guarded(test.a), b = guarded(test.b), bias = guarded(test.bias);
  const GuardedMemory residual = guarded(test.residual);
  GuardedMemory c = guarded(test.c);
  const auto calls = make_gemm_calls(
      test.step, test.at(address(a), address(b), address(c), address(bias), address(residual)), {},
      {});
  REQUIRE(calls.has_value());
  for (GemmPlace place : calls->places) {
    StridedGemmShape shape = strided_gemm_shape(calls->problem);
    void* arguments[] = {&place.a, &place.b, &place.c, &place.bias, &place.residual, shape.data()};
    Grid grid;
    grid.blocks.x = static_cast<unsigned>(*strided_gemm_blocks(calls->problem));
    grid.threads.x = kStridedGemmThreads;
    const Status done =
        module.launch(strided_gemm_kernel(calls->problem).name, grid, arguments, order);
    REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message()));
  }
  for (const GuardedMemory* memory :
       {&a, &b, &bias, &residual, static_cast<const GuardedMemory*>(&c)})
    CHECK(memory->damage() == "");
  return {c.data(), c.data() + c.bytes()};
}

ShimModule compile(llvm::ArrayRef<GemmCase> tests) {
  std::map<std::string, std::string> texts;
  for (const GemmCase& test : tests) {
    const auto calls = make_gemm_calls(test.step, test.at(0, 0, 0, 0), {}, {});
    REQUIRE(calls.has_value());
    const StridedGemmKernel kernel = strided_gemm_kernel(calls->problem);
    texts[kernel.name] = kernel.text;
  }
  std::vector<ShimSource> sources;
  for (const auto& [name, text] : texts) sources.push_back({name, text});
  auto module = ShimModule::compile(sources, kernel_library());
  REQUIRE_MESSAGE(module.has_value(), (module ? "" : module.error().message()));
  return std::move(*module);
}

/// Elements with other bits; NaN = NaN, since which of two a sum takes is the compiler's choice.
int64_t differences(const GemmCase::Buffer& got, const GemmCase::Buffer& expected) {
  const int64_t size = whole_bytes(got.dtype);
  int64_t count = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(got.bytes.size()) / size; ++i) {
    const bool nan = std::isnan(read_element(got, i)) && std::isnan(read_element(expected, i));
    count += !nan &&
             std::memcmp(got.bytes.data() + i * size, expected.bytes.data() + i * size, size) != 0;
  }
  return count;
}

/// Values at the edges of the types, infinities and NaN among a buffer's elements.
void sprinkle(GemmCase::Buffer& buffer, Random& random) {
  constexpr float kSpecial[] = {-0.0f, 0.0f, 1e-30f, -1e-30f, 6e-8f, 65504, 3e38f, INFINITY, NAN};
  const auto elements = static_cast<int64_t>(buffer.bytes.size()) / whole_bytes(buffer.dtype);
  for (int64_t i = 0; i < elements; ++i)
    if (random.chance(3)) write_element(buffer, i, random.pick(kSpecial));
}

TEST_CASE("any strides, types, copies and extents give the plain loop's bits") {
  Random random(7);
  std::vector<GemmCase> tests;
  for (int i = 0; i < 120; ++i) {
    tests.push_back(random_gemm_case(
        random,
        {.any_stride = true, .empty = true, .epilogues = i % 2 == 0, .most = i % 8 ? 40 : 150}));
    // Finite: no NaN that is written passes for what stood there, nor the other way round.
    std::ranges::fill(tests.back().c.bytes, std::byte{0x5a});
    if (i % 3) continue;
    sprinkle(tests.back().a, random);
    sprinkle(tests.back().b, random);
  }
  const ShimModule module = compile(tests);
  constexpr ThreadOrder kOrders[] = {ThreadOrder::ascending, ThreadOrder::descending,
                                     ThreadOrder::shuffled};
  for (size_t i = 0; i < tests.size(); ++i) {
    CAPTURE(tests[i].text());
    const GemmCase::Buffer expected = expected_result(tests[i]);
    GemmCase::Buffer got{tests[i].c.dtype, run(module, tests[i], kOrders[i % 3])};
    REQUIRE(got.bytes.size() == expected.bytes.size());
    CHECK(differences(got, expected) == 0);
  }
}

TEST_CASE("the last sum is not added to +0") {
  // The product underflows to -0, and so it stays: nothing comes after the only k.
  Random random(1);
  GemmCase test;
  test.step.m = test.step.n = test.step.k = 1;
  test.a = test.b = test.c = {DType::f32, std::vector<std::byte>(4)};
  test.step.a = test.step.b = test.step.c = {0, 0, 1, 1};
  write_element(test.a, 0, -1e-30f);
  write_element(test.b, 0, 1e-30f);
  const GemmCase::Buffer got{DType::f32, run(compile(test), test, ThreadOrder::ascending)};
  CHECK(read_element(got, 0) == 0);
  CHECK(std::signbit(read_element(got, 0)));
}

TEST_CASE("blocks of a launch, and products beyond one") {
  GemmProblem problem = typed(DType::f16, DType::f16, DType::f16, {});
  problem.m = 65, problem.n = 64, problem.k = 8, problem.batch = 3;
  CHECK(strided_gemm_blocks(problem) == 6);
  problem.batch = INT64_MAX / 2;
  CHECK(!strided_gemm_blocks(problem));
  problem.batch = 1;
  problem.m = problem.n = INT64_MAX;
  CHECK(!strided_gemm_blocks(problem));
}

TEST_CASE("compiles for devices, where the machine has NVRTC") {
  const auto nvrtc = find_nvrtc();
  if (!nvrtc) return;
  const StridedGemmKernel kernels[] = {
      strided_gemm_kernel(typed(DType::f32, DType::f32, DType::f32, {})),
      strided_gemm_kernel(typed(DType::f16, DType::bf16, DType::f32, DType::f16)),
      strided_gemm_kernel(typed(DType::bf16, DType::bf16, DType::bf16, DType::bf16))};
  std::vector<KernelSource> sources;
  for (const StridedGemmKernel& kernel : kernels) sources.push_back({kernel.name, kernel.text});
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const auto cubins = compile_kernels(*nvrtc, sources, kernel_library(), arch);
    CHECK_MESSAGE(cubins.has_value(), (cubins ? "" : cubins.error().message()));
  }
}

}  // namespace
}  // namespace sinter::strided_gemm_test
