// Matrix products on the host: the one core that the evaluator and the plan executor share.
#pragma once

#include <cstddef>

#include "ir/activation.h"
#include "ir/error.h"
#include "ir/types.h"

namespace sinter {

/// A matrix in memory that someone else owns: element (i, j) stands `i * row_stride + j *
/// column_stride` elements after `data`. Strides may be 0 (repeated).
struct ConstMatrix {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  int64_t row_stride = 0, column_stride = 0;
};
struct MutableMatrix {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  int64_t row_stride = 0, column_stride = 0;
};

/// The operations on a product's sums before they are rounded: `bias`, a row (its row_stride is not
/// used), and `residual`, a matrix like the result, are added where they are not null.
struct Epilogue {
  const ConstMatrix* bias = nullptr;
  const ConstMatrix* residual = nullptr;
  Activation activation = Activation::none;
  bool ascending = false;  // GemmStep::ascending: no library's order, but one chain over k
};

/// c[m, n] = round(activation(sum over k of a[m, k] * b[k, n] + bias[n] + residual[m, n])); float
/// types only. Operands are made dense float32 and go through OpenBLAS in one thread: the same call
/// gives the same bits on one machine; another m or n may sum an element in another order, unless
/// the epilogue is of an ascending product. Errors: as OpenBlasCall::begin().
Status gemm(const ConstMatrix& a, const ConstMatrix& b, const MutableMatrix& c, int64_t m,
            int64_t n, int64_t k, const Epilogue& epilogue = {});

/// The core, on dense operands: c[m, n] = a[m, k] * b[n, k]^T; zeros where k is 0.
Status multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k);
Status multiply(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k);

}  // namespace sinter
