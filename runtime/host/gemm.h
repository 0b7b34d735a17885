// A plan's GEMM step on the host.
#pragma once

#include "plan/program.h"
#include "runtime/evaluate/blas.h"

namespace sinter {

/// The buffers of a GEMM step: their first bytes and element types.
struct GemmBuffers {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  std::byte* c = nullptr;
  const std::byte* bias = nullptr;      // null: none
  const std::byte* residual = nullptr;  // of c's type; null: none
  DType a_dtype = DType::f32, b_dtype = DType::f32, c_dtype = DType::f32, bias_dtype = DType::f32;
};

/// Runs all loops of the step for these symbol values; an error where a size exceeds 63 bits.
Status run_gemm(const GemmStep& step, const GemmBuffers& buffers, llvm::ArrayRef<Symbol> symbols,
                llvm::ArrayRef<int64_t> symbol_values);

}  // namespace sinter
