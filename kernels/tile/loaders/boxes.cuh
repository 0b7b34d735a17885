// Tiles of an operand as boxes of its tensor map. One thread calls these; `full` counts the bytes.
#pragma once

#include "kernels/isa/cluster.cuh"
#include "kernels/isa/tensor_map.cuh"
#include "kernels/tile/layout.h"

#if SINTER_HAS_WGMMA
namespace sinter {

// Rows from `row` on and a panel of elements from `k` on. Each of `cluster` blocks, of which this
// is number `rank`, copies its part of `rows` rows to all of them.
template <int rows, int cluster>
SINTER_DEVICE void copy_shared_rows(unsigned char* to, const TensorMap& map, int k, int row,
                                    int rank, SharedAddress full) {
  if constexpr (cluster == 1) {
    cp_async_bulk_tensor_2d(cvta_to_shared(to), map, k, row, full);
  } else {
    const int first = rank * (rows / cluster);
    cp_async_bulk_tensor_2d_multicast(cvta_to_shared(to + first * kPanelRow), map, k, row + first,
                                      full, (1 << cluster) - 1);
  }
}

// Waits until the barriers of all blocks of the cluster exist, or until all blocks are done: a
// block writes into the others' shared memory.
template <int cluster>
SINTER_DEVICE void meet_cluster() {
  if constexpr (cluster == 1) return __syncthreads();
  barrier_cluster_arrive_relaxed();
  barrier_cluster_wait();
}

// The columns from `column` on of a matrix whose columns are contiguous: `depth` rows of the sum
// from `k` on, in panels of kPanel columns. `several`: the tensor map has several matrices, of
// which this is number `matrix`; behind the last row of its sum a box has zeros, not the next
// matrix.
template <int columns, int depth, bool several = false>
SINTER_DEVICE void copy_transposed(unsigned char* to, const TensorMap& map, int k, int column,
                                   SharedAddress full, int matrix = 0) {
#pragma unroll
  for (int panel = 0; panel < columns / kPanel; ++panel) {
    const SharedAddress at = cvta_to_shared(to + panel * tile_panel(depth, kPanel));
    if constexpr (several)
      cp_async_bulk_tensor_3d(at, map, column + panel * kPanel, k, matrix, full);
    else
      cp_async_bulk_tensor_2d(at, map, column + panel * kPanel, k, full);
  }
}

// A box of pairs of rows `apart` (PairedRows), from position `position` on; `element`: the first of
// each row.
template <int apart>
SINTER_DEVICE void copy_pairs(unsigned char* to, const TensorMap& map, int element, int position,
                              SharedAddress full) {
  const int pair = position / 2;
  cp_async_bulk_tensor_5d(cvta_to_shared(to), map, element, 0, 0, pair % apart / kRowChunk,
                          pair / apart, full);
}
// The same of `depth` elements of a matrix that is read once: a panel of `box` rows after the
// other.
template <int apart, int box, int depth>
SINTER_DEVICE void copy_pairs_once(unsigned char* to, const TensorMap& map, int element,
                                   int position, SharedAddress full) {
  const int pair = position / 2;
#pragma unroll
  for (int panel = 0; panel < depth / 64; ++panel)
    cp_async_bulk_tensor_5d_evict_first(cvta_to_shared(to + panel * box * kPanelRow), map,
                                        element + panel * 64, 0, 0, pair % apart / kRowChunk,
                                        pair / apart, full);
}

// Where a box of several panels begins, by the dimensions of its tensor map (has_whole_panels).
struct PanelsCorner {
  int element, row, panel;
};
template <int length>
SINTER_DEVICE PanelsCorner panels_corner(int k, int row) {
  if constexpr (has_whole_panels(length))
    return {0, row, k / 64};
  else
    return {k, row, 0};
}
// Rows from `row` on and elements from `k` on, of rows of `length` elements.
template <int length>
SINTER_DEVICE void copy_panels(unsigned char* to, const TensorMap& map, int k, int row,
                               SharedAddress full) {
  const PanelsCorner corner = panels_corner<length>(k, row);
  cp_async_bulk_tensor_3d(cvta_to_shared(to), map, corner.element, corner.row, corner.panel, full);
}
// The same of a matrix that is read once.
template <int length>
SINTER_DEVICE void copy_panels_once(unsigned char* to, const TensorMap& map, int k, int row,
                                    SharedAddress full) {
  const PanelsCorner corner = panels_corner<length>(k, row);
  cp_async_bulk_tensor_3d_evict_first(cvta_to_shared(to), map, corner.element, corner.row,
                                      corner.panel, full);
}

}  // namespace sinter
#endif
