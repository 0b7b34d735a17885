// ldmatrix.
#pragma once

#include "kernels/isa/warp_words.cuh"

namespace sinter {

// Calls take(rows) with the row addresses of all lanes.
template <typename Take>
SINTER_DEVICE void exchange_rows(const void* row, Take take) {
  WarpWords& warp = words_of_warp();
  warp.rows[threadIdx.x % 32] = static_cast<const unsigned short*>(row);
  __syncwarp();
  take(warp.rows);
  __syncwarp();
}
SINTER_DEVICE void ldmatrix_x4(unsigned (&words)[4], const void* row) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  exchange_rows(row, [&](const unsigned short* const(&rows)[32]) {
    for (int m = 0; m < 4; ++m)
      words[m] = rows[8 * m + g][2 * q] | static_cast<unsigned>(rows[8 * m + g][2 * q + 1]) << 16;
  });
}
SINTER_DEVICE void ldmatrix_x4_trans(unsigned (&words)[4], const void* row) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  exchange_rows(row, [&](const unsigned short* const(&rows)[32]) {
    for (int m = 0; m < 4; ++m)
      words[m] = rows[8 * m + 2 * q][g] | static_cast<unsigned>(rows[8 * m + 2 * q + 1][g]) << 16;
  });
}

}  // namespace sinter
