#include "runtime/cuda/strided_gemm.h"

#include "ir/activation_names.h"
#include "runtime/cuda/launch.h"

namespace sinter {
namespace {

constexpr int64_t kTile = 64;

/// `dtype` as the kernel library calls it.
std::string_view element_type(DType dtype) {
  SINTER_CHECK(is_float(dtype), "a product of {}", to_string(dtype));
  return dtype_info(dtype).memory;
}

}  // namespace

std::vector<StridedGemmKernel> strided_gemm_kernels(const Program& program) {
  std::vector<StridedGemmKernel> kernels;
  const auto add = [&](const EntryPlan& entry, const GemmStep& gemm) {
    const auto dtype = [&](int64_t buffer) {
      return entry.buffers[static_cast<size_t>(buffer)].type.dtype;
    };
    GemmProblem problem;
    problem.a.dtype = dtype(gemm.a.buffer);
    problem.b.dtype = dtype(gemm.b.buffer);
    problem.c.dtype = dtype(gemm.c.buffer);
    if (gemm.bias >= 0) problem.bias = GemmProblem::Bias{.dtype = dtype(gemm.bias)};
    problem.activation = gemm.activation;
    // Products of other types are refused when they are prepared.
    if (!is_float(problem.a.dtype) || !is_float(problem.b.dtype) || !is_float(problem.c.dtype))
      return;
    StridedGemmKernel kernel = strided_gemm_kernel(problem);
    if (llvm::none_of(kernels, [&](const auto& known) { return known.name == kernel.name; }))
      kernels.push_back(std::move(kernel));
  };
  for (const EntryPlan& entry : program.entries)
    for (const Step& step : entry.steps)
      visit(
          step, [](const KernelStep&) {}, [&](const GemmStep& gemm) { add(entry, gemm); },
          [](const CopyStep&) {}, [](const CollectiveStep&) {});
  return kernels;
}

StridedGemmKernel strided_gemm_kernel(const GemmProblem& problem) {
  const DType bias = problem.bias ? problem.bias->dtype : problem.c.dtype;
  StridedGemmKernel kernel;
  kernel.name =
      fmt::format("strided_gemm_{}_{}_{}_{}", to_string(problem.a.dtype),
                  to_string(problem.b.dtype), to_string(problem.c.dtype), to_string(bias));
  std::string_view activation = to_string(problem.activation);
  if (activation.empty())
    activation = "none";
  else
    kernel.name += fmt::format("_{}", activation);
  kernel.text =
      fmt::format(R"(#include "kernels/gemm/strided_gemm.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(256)
{0}(const {1}* a, const {2}* b, {3}* c, const {4}* bias, const {3}* residual, GemmShape shape) {{
  __shared__ float shared[kGemmShared];
  griddepcontrol_launch_dependents();
  griddepcontrol_wait();
  strided_gemm<Activation::{5}>(a, b, c, bias, residual, shape, shared);
}}
)",
                  kernel.name, element_type(problem.a.dtype), element_type(problem.b.dtype),
                  element_type(problem.c.dtype), element_type(bias), activation);
  return kernel;
}

StridedGemmShape strided_gemm_shape(const GemmProblem& p) {
  return {p.m,
          p.n,
          p.k,
          p.a.row_stride,
          p.a.column_stride,
          p.a.batch_stride,
          p.b.row_stride,
          p.b.column_stride,
          p.b.batch_stride,
          p.c.row_stride,
          p.c.column_stride,
          p.c.batch_stride};
}

std::optional<int64_t> strided_gemm_blocks(const GemmProblem& problem) {
  const auto tiles = [](int64_t extent) { return extent / kTile + (extent % kTile != 0); };
  int64_t blocks = 0;
  if (__builtin_mul_overflow(tiles(problem.m), tiles(problem.n), &blocks) ||
      __builtin_mul_overflow(blocks, problem.batch, &blocks) || blocks > kMaxBlocks)
    return std::nullopt;
  return blocks;
}

}  // namespace sinter
