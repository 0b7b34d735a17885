// The product is computed in panels of 32 columns, which are vector lanes: every element is a chain
// of its own, so that the vector width of the machine has no influence on the result. A library's
// kernels choose their order of summation by machine, m and n, and so cannot be a reference.
#include "runtime/blas.h"

#include <algorithm>
#include <vector>

#include "runtime/host_view.h"
#include "runtime/vector_clones.h"

namespace sinter {
namespace {

constexpr int64_t kPanel = 32;        // columns
constexpr int64_t kDepth = 256;       // values of k in a chunk
constexpr int64_t kRows = 4;          // rows that share a pass over a panel

/// c[i, 0 .. 31] += a[i, 0 .. depth-1] * panel[0 .. depth-1, 0 .. 31] for kRows rows of a; missing
/// rows repeat the last one. c is dense, kRows x kPanel.
template <typename T>
[[gnu::always_inline]] inline void accumulate(const T* const* a, const T* panel, int64_t depth,
                                              T* c) {
  T sums[kRows][kPanel] = {};
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t i = 0; i < kRows; ++i) {
      const T factor = a[i][k];
      for (int64_t j = 0; j < kPanel; ++j) sums[i][j] += factor * panel[k * kPanel + j];
    }
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kPanel; ++j) c[i * kPanel + j] = sums[i][j];
}

SINTER_VECTOR_CLONES void accumulate_rows(const float* const* a, const float* panel, int64_t depth,
                                          float* c) {
  accumulate(a, panel, depth, c);
}
SINTER_VECTOR_CLONES void accumulate_rows(const double* const* a, const double* panel,
                                          int64_t depth, double* c) {
  accumulate(a, panel, depth, c);
}

template <typename T>
void multiply_panels(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k) {
  std::fill(c, c + m * n, T{0});
  std::vector<T> panel(static_cast<size_t>(kPanel * kDepth));
  T block[kRows * kPanel];
  for (int64_t column = 0; column < n; column += kPanel) {
    const int64_t width = std::min(kPanel, n - column);
    for (int64_t start = 0; start < k; start += kDepth) {
      const int64_t depth = std::min(kDepth, k - start);
      for (int64_t j = 0; j < width; ++j) {
        const T* source = b + (column + j) * k + start;
        for (int64_t i = 0; i < depth; ++i) panel[i * kPanel + j] = source[i];
      }
      for (int64_t row = 0; row < m; row += kRows) {
        const T* rows[kRows];
        for (int64_t i = 0; i < kRows; ++i) rows[i] = a + std::min(row + i, m - 1) * k + start;
        accumulate_rows(rows, panel.data(), depth, block);
        for (int64_t i = 0; i < std::min(kRows, m - row); ++i)
          for (int64_t j = 0; j < width; ++j) c[(row + i) * n + column + j] += block[i * kPanel + j];
      }
    }
  }
}

/// The matrix as dense floats: its own memory where it is that already.
const float* dense(const ConstMatrix& matrix, int64_t rows, int64_t columns,
                   std::vector<float>& scratch) {
  const HostView view{storage_of(matrix.dtype), matrix.data, {rows, columns},
                      {matrix.row_stride, matrix.column_stride}, nullptr};
  return dense_elements(view, scratch);
}

}  // namespace

void multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  multiply_panels(a, b, c, m, n, k);
}
void multiply(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k) {
  multiply_panels(a, b, c, m, n, k);
}

void gemm(const ConstMatrix& a, const ConstMatrix& b, const MutableMatrix& c, int64_t m, int64_t n,
          int64_t k, const ConstMatrix* bias) {
  if (m == 0 || n == 0) return;
  std::vector<float> a_scratch, b_scratch, bias_scratch, sums(static_cast<size_t>(m * n));
  const ConstMatrix b_transposed{b.data, b.dtype, b.column_stride, b.row_stride};
  multiply(dense(a, m, k, a_scratch), dense(b_transposed, n, k, b_scratch), sums.data(), m, n, k);
  if (bias != nullptr) {
    const float* row = dense(*bias, 1, n, bias_scratch);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) sums[i * n + j] += row[j];
  }
  const Storage storage = storage_of(c.dtype);
  for (int64_t i = 0; i < m; ++i)
    store_run(sums.data() + i * n, n, storage, c.data + i * c.row_stride * size_bytes(c.dtype),
              c.column_stride);
}

}  // namespace sinter
