// How the matrix of a gemv stands in memory: rows of elements, or packed rows of codes and scales
// (kernels/common/packed_matrix.cuh), which have the same members.
#pragma once

#include "kernels/common/packed_matrix.cuh"

namespace sinter {

template <typename T, int length>
struct DenseMatrix {
  using Element = T;
  static constexpr bool kPacked = false;
  static constexpr int kStepLength = 256;  // elements that a warp multiplies at once
  static constexpr int kStepBytes = kStepLength * static_cast<int>(sizeof(T));

  // The address of element `k` of a row.
  static SINTER_DEVICE const unsigned char* at(const T* matrix, long long row, int k) {
    return reinterpret_cast<const unsigned char*>(matrix + row * length + k);
  }
  // Bytes of `count` elements from `begin` on.
  static SINTER_DEVICE int bytes(int, int count) { return count * static_cast<int>(sizeof(T)); }
};

}  // namespace sinter
