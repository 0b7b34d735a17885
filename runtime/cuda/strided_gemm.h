// Sinter's own kernel for matrix products, kernels/gemm/strided_gemm.cuh, as a launch needs it.
#pragma once

#include <array>

#include "runtime/cuda/gemm_problem.h"

namespace sinter {

/// The kernel for the problem's element types, which are float types: one function `name(a, b, c,
/// bias, residual, shape)` of five pointers and a StridedGemmShape. Problems of the same types and
/// activation have the same.
struct StridedGemmKernel {
  std::string name;  // "strided_gemm_f16_f16_f32_f32"
  std::string text;
};
StridedGemmKernel strided_gemm_kernel(const GemmProblem& problem);
/// The kernels that the products of a program may need, each once.
std::vector<StridedGemmKernel> strided_gemm_kernels(const Program& program);

/// GemmShape of the kernel: m, n, k, then strides of row, column and copy for A, B and C.
using StridedGemmShape = std::array<long long, 12>;
StridedGemmShape strided_gemm_shape(const GemmProblem& problem);

inline constexpr int64_t kStridedGemmThreads = 256;
/// Blocks of a launch, at least 1 where the result has elements; nothing where it would need more
/// than a launch can have.
std::optional<int64_t> strided_gemm_blocks(const GemmProblem& problem);

}  // namespace sinter
