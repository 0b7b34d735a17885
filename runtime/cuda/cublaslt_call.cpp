// A matrix in row order is, read in column order, its transpose. So C in row order is had by
// C^T = B^T A^T, where the bias, one element a column of C, follows the rows of the library's D.
#include "runtime/cuda/cublaslt_call.h"

#include <utility>

namespace sinter {
namespace {

using Matrix = CublasLtCall::Matrix;

/// `operand`, rows x columns, as stored: in column order as it is, or in row order transposed.
std::optional<Matrix> stored(const GemmProblem::Operand& operand, int64_t rows, int64_t columns) {
  Matrix matrix{operand.dtype,     rows, columns, operand.column_stride, operand.batch_stride,
                operand.alignment, false};
  if (operand.row_stride != 1) {
    if (operand.column_stride != 1) return std::nullopt;
    matrix.rows = columns;
    matrix.columns = rows;
    matrix.leading = operand.row_stride;
    matrix.transposed = true;
  }
  if (matrix.leading < matrix.rows) return std::nullopt;
  return matrix;
}

bool has_types(const GemmProblem& problem) {
  return is_float(problem.a.dtype) && problem.a.dtype == problem.b.dtype &&
         (problem.c.dtype == problem.a.dtype || problem.c.dtype == DType::f32) &&
         (!problem.bias || problem.bias->dtype == problem.c.dtype);
}

}  // namespace

std::optional<CublasLtCall> cublaslt_call(const GemmProblem& problem) {
  if (!has_types(problem) || problem.k == 0 || problem.batch > INT32_MAX) return std::nullopt;
  const std::optional<Matrix> a = stored(problem.a, problem.m, problem.k);
  const std::optional<Matrix> b = stored(problem.b, problem.k, problem.n);
  const std::optional<Matrix> c = stored(problem.c, problem.m, problem.n);
  if (!a || !b || !c) return std::nullopt;
  CublasLtCall call{
      *a, *b, *c, problem.batch, problem.bias, problem.residual, problem.activation, c->transposed};
  if (call.swapped) {
    std::swap(call.a, call.b);
    call.a.transposed = !call.a.transposed;
    call.b.transposed = !call.b.transposed;
    call.d.transposed = false;
  } else if (call.bias) {
    return std::nullopt;
  }
  return call;
}

}  // namespace sinter
