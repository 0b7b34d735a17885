// How a matrix product looks to cuBLASLt: a pure function, no library needed.
#pragma once

#include "runtime/cuda/gemm_problem.h"

namespace sinter {

/// D = activation(op(A) op(B) (+ bias along the rows of D) (+ C, laid out as D)) in the library's
/// terms: every matrix in column order, element (i, j) at i + j * leading. A and B are stored
/// transposed where `transposed`.
struct CublasLtCall {
  struct Matrix {
    DType dtype = DType::f32;
    int64_t rows = 0, columns = 0;  // as stored
    int64_t leading = 0;            // elements from a column to the next, at least `rows`
    int64_t batch_stride = 0;       // elements
    int64_t alignment = 1;          // bytes
    bool transposed = false;
  };
  Matrix a, b, d;
  int64_t batch = 1;
  std::optional<GemmProblem::Bias> bias;  // one element for each row of D
  std::optional<int64_t> residual;        // C's alignment in bytes
  Activation activation = Activation::none;
  bool swapped = false;  // A is the problem's B, B its A: D is the transpose of C
};

/// The call for a problem that has elements, or nothing where the library has no such call: other
/// element types (a result is of the operands' type or f32, a bias of the result's), k of 0, more
/// than 2^31 - 1 copies, an operand without a stride of 1 or with overlapping lines, a bias beside
/// a result in column order.
std::optional<CublasLtCall> cublaslt_call(const GemmProblem& problem);

}  // namespace sinter
