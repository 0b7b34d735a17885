// Matrix products on the host: the one core that the evaluator and the plan executor share.
#pragma once

#include <cstddef>

#include "ir/types.h"

namespace sinter {

/// A matrix in memory that someone else owns: element (i, j) stands `i * row_stride + j *
/// column_stride` elements behind `data`. Strides may be 0 (repeated).
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

/// c[m, n] = round(sum over k of a[m, k] * b[k, n] + bias[n]); float types only, `bias` is a row
/// (its row_stride is not used) or null. A sum is over chunks of 256 values of k, upwards in
/// float32, the chunks then added upwards, without fused multiply-add: an element's bits depend on
/// its row of a, its column of b and k alone, not on m, n, the strides or the machine.
void gemm(const ConstMatrix& a, const ConstMatrix& b, const MutableMatrix& c, int64_t m, int64_t n,
          int64_t k, const ConstMatrix* bias = nullptr);

/// The core, on dense operands: c[m, n] = a[m, k] * b[n, k]^T.
void multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k);
void multiply(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k);

}  // namespace sinter
