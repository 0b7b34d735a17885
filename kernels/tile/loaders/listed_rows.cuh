// Loads rows of a matrix that a list names, by cp.async: a tensor map copies neighbouring rows.
#pragma once

#include "kernels/isa/cp_async.cuh"
#include "kernels/isa/mbarrier.cuh"
#include "kernels/tile/layout.h"

#if SINTER_HAS_WGMMA
namespace sinter {

// Row i is row numbers[i] of `table`, which has `table_rows` rows of `length` elements, one after
// the other; zeros where that is no row.
template <typename T, int length>
struct ListedRows {
  const T* table;
  const int* numbers;
  long long table_rows;

  // The elements from `k` on, `depth`, of the rows from `first` on, into a tile of `rows` rows;
  // zeros from row `end` on. By `threads` threads, of which this is number `thread`; the phase of
  // `full` counts each of them.
  template <int rows, int depth, int threads>
  SINTER_DEVICE void load(unsigned char* tile, int first, int end, int k, SharedAddress full,
                          int thread) const {
    constexpr int chunks = depth / 8;
    static_assert(length % 8 == 0 && threads % chunks == 0, "a thread has a chunk of some rows");
    const int chunk = thread % chunks, at = k + 8 * chunk;
#pragma unroll 4
    for (int row = thread / chunks; row < rows; row += threads / chunks) {
      const int number = first + row < end ? numbers[first + row] : -1;
      const bool present = number >= 0 && number < table_rows && at < length;
      cp_async(tile + tile_offset(rows, depth, row, chunk),
               present ? table + static_cast<long long>(number) * length + at : table, present);
    }
    cp_async_mbarrier_arrive_noinc(full);
  }
};

}  // namespace sinter
#endif
