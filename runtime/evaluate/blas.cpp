// OpenBLAS behind one door: one thread, so that the same call gives the same bits.
#include "runtime/evaluate/blas.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "runtime/evaluate/host_view.h"
#include "runtime/evaluate/openblas.h"
#include "runtime/evaluate/vector_clones.h"

namespace sinter {
namespace {

/// Extents as the library counts them.
blasint extent(int64_t n) {
  SINTER_CHECK(n <= std::numeric_limits<blasint>::max(), "a matrix of {} rows or columns", n);
  return static_cast<blasint>(n);
}

/// The matrix as dense floats: its own memory where it is that already.
const float* dense(const ConstMatrix& matrix, int64_t rows, int64_t columns,
                   std::vector<float>& scratch) {
  const HostView view{storage_of(matrix.dtype),
                      matrix.data,
                      {rows, columns},
                      {matrix.row_stride, matrix.column_stride},
                      nullptr};
  return dense_elements(view, scratch);
}

constexpr int64_t kAscendingColumns = 64;  // that are summed side by side
using AscendingSums = std::array<float, kAscendingColumns>;

/// The sums of a row of k elements times a tile [k, kAscendingColumns].
SINTER_VECTOR_CLONES void sum_upwards(const float* row, const float* tile, int64_t k,
                                      AscendingSums& sums) {
  AscendingSums own{};
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < kAscendingColumns; ++j)
      own[j] = __builtin_fmaf(row[i], tile[i * kAscendingColumns + j], own[j]);
  sums = own;
}

/// multiply() in the order of kernels/gemm/strided_gemm.cuh.
void multiply_ascending(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  std::vector<float> tile(static_cast<size_t>(k * kAscendingColumns));
  AscendingSums sums;
  for (int64_t column = 0; column < n; column += kAscendingColumns) {
    const int64_t columns = std::min(kAscendingColumns, n - column);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < k; ++i) tile[i * kAscendingColumns + j] = b[(column + j) * k + i];
    for (int64_t row = 0; row < m; ++row) {
      sum_upwards(a + row * k, tile.data(), k, sums);
      std::copy_n(sums.begin(), columns, c + row * n + column);
    }
  }
}

}  // namespace

Status multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  if (m == 0 || n == 0) return {};
  SINTER_LET(library, OpenBlasCall::begin());
  const ForeignCall call;
  const blasint lead = extent(std::max<int64_t>(k, 1));
  library->sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, extent(m), extent(n), extent(k), 1.0f, a,
                 lead, b, lead, 0.0f, c, extent(n));
  return {};
}

Status multiply(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k) {
  if (m == 0 || n == 0) return {};
  SINTER_LET(library, OpenBlasCall::begin());
  const ForeignCall call;
  const blasint lead = extent(std::max<int64_t>(k, 1));
  library->dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, extent(m), extent(n), extent(k), 1.0, a,
                 lead, b, lead, 0.0, c, extent(n));
  return {};
}

Status gemm(const ConstMatrix& a, const ConstMatrix& b, const MutableMatrix& c, int64_t m,
            int64_t n, int64_t k, const Epilogue& epilogue) {
  if (m == 0 || n == 0) return {};
  std::vector<float> a_scratch, b_scratch, scratch, sums(static_cast<size_t>(m * n));
  const ConstMatrix b_transposed{b.data, b.dtype, b.column_stride, b.row_stride};
  const float* const rows = dense(a, m, k, a_scratch);
  const float* const columns = dense(b_transposed, n, k, b_scratch);
  if (epilogue.ascending)
    multiply_ascending(rows, columns, sums.data(), m, n, k);
  else
    SINTER_TRY(multiply(rows, columns, sums.data(), m, n, k));
  if (epilogue.bias != nullptr) {
    const float* row = dense(*epilogue.bias, 1, n, scratch);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) sums[i * n + j] += row[j];
  }
  if (epilogue.residual != nullptr) {
    const float* all = dense(*epilogue.residual, m, n, scratch);
    for (int64_t i = 0; i < m * n; ++i) sums[i] += all[i];
  }
  if (epilogue.activation != Activation::none)
    for (float& sum : sums) sum = activated(epilogue.activation, sum);
  const Storage storage = storage_of(c.dtype);
  for (int64_t i = 0; i < m; ++i)
    store_run(sums.data() + i * n, n, storage, c.data + i * c.row_stride * whole_bytes(c.dtype),
              c.column_stride);
  return {};
}

}  // namespace sinter
