// tiled_attention by products of warps: a warp has 16 rows of the block. All warps load a tile of
// keys while they multiply with the values of the tile before, and its values while they compute
// the dot products with the keys:
//
//   load      | keys 0 | values 0 | keys 1      | values 1 | keys 2      | ...
//   multiply           | q k      | weights v   | q k      | weights v   | ...
//
// Warps beyond the rows of the block only load (a plan for warpgroups on a device without them).
#pragma once

#include "kernels/attention/attention_items.cuh"
#include "kernels/attention/attention_softmax.cuh"
#include "kernels/common/mma.cuh"

namespace sinter {

#if SINTER_HAS_MMA || !defined(__CUDACC_RTC__)

// Where a lane points load_matrices for a 16 by 16 part of a tile: rows of the first matrix, then 8
// rows or 8 columns on.
template <int rows, int padded>
SINTER_DEVICE const void* part_rows_first(const unsigned char* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return tile + attention_offset(rows, padded, row + lane % 16, column / 8 + lane / 16);
}
template <int rows, int padded>
SINTER_DEVICE const void* part_columns_first(const unsigned char* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return tile +
         attention_offset(rows, padded, row + lane / 16 * 8 + lane % 8, column / 8 + lane / 8 % 2);
}

// sums of 16 rows and 16 columns, from column `first` of the sums on
template <typename T, int count>
SINTER_DEVICE void multiply_two_tiles(float (&sums)[count], int first, const unsigned* a,
                                      const unsigned (&b)[4]) {
  float(&left)[4] = *reinterpret_cast<float(*)[4]>(sums + first / 2);
  float(&right)[4] = *reinterpret_cast<float(*)[4]>(sums + first / 2 + 4);
  multiply_tile(left, static_cast<const T*>(nullptr), a[0], a[1], a[2], a[3], b[0], b[1]);
  multiply_tile(right, static_cast<const T*>(nullptr), a[0], a[1], a[2], a[3], b[2], b[3]);
}

template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend_item_by_warps(AttentionBlock<Config> block, const Query& q,
                                        const Result& out) {
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;
  const int thread = static_cast<int>(threadIdx.x), row0 = thread / 32 * 16;
  const bool computes = row0 < Sizes::rows;
  const SeenRange range = block.find_seen_range();
  block.set_seen_range(range);
  const SeenTiles tiles = block.tiles_of(range);
  const int end = tiles.end;
  int tile = tiles.first;
  if (tile < end) block.template load_keys<Config::kThreads>(tile, 0, thread);
  commit_copies();
  block.template take_queries<Config::kThreads>(q, 0, thread);
  const int row = (computes ? row0 : 0) + thread % 32 / 4;
  AttentionSoftmax<Config> softmax(block.seen_by(row), block.seen_by(row + 8));
  float sums[Sizes::value_width / 2] = {};
#pragma unroll 1
  for (; tile < end; ++tile) {
    wait_for_copies<0>();
    __syncthreads();  // the keys are there, and the values are no longer needed
    block.template load_values<Config::kThreads>(tile, 0, thread);
    commit_copies();
    unsigned weights[Sizes::keys / 4];
    if (computes) {
      float dots[Sizes::keys / 2] = {};
#pragma unroll
      for (int k = 0; k < Sizes::width; k += 16) {
        unsigned a[4];
        load_matrices(a, part_rows_first<Sizes::rows, Sizes::width>(block.queries(0), row0, k));
#pragma unroll
        for (int key = 0; key < Sizes::keys; key += 16) {
          unsigned b[4];
          load_matrices(b, part_columns_first<Sizes::keys, Sizes::width>(block.keys(0), key, k));
          multiply_two_tiles<T>(dots, key, a, b);
        }
      }
      if (softmax.grow(dots, tile)) softmax.scale_rows(sums, softmax.scale());
      softmax.weigh(dots, weights);
    }
    wait_for_copies<0>();
    __syncthreads();  // the values are there, and the keys are no longer needed
    if (tile + 1 < end) block.template load_keys<Config::kThreads>(tile + 1, 0, thread);
    commit_copies();
    if (computes) {
#pragma unroll
      for (int key = 0; key < Sizes::keys; key += 16)
#pragma unroll
        for (int column = 0; column < Sizes::value_width; column += 16) {
          unsigned b[4];
          load_transposed(
              b, part_rows_first<Sizes::keys, Sizes::value_width>(block.values(0), key, column));
          multiply_two_tiles<T>(sums, column, weights + key / 4, b);
        }
    }
  }
  wait_for_copies<0>();
  if (!computes) return;
  float by[2];
  softmax.finish(by);
  softmax.scale_rows(sums, by);
  block.give(sums, row, out);
}

template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend_by_warps(const AttentionItems<Config>& items, const Query& q,
                                   const Result& out) {
  for (int round = 0; items.has(round); ++round) {
    if (round > 0) __syncthreads();  // nobody needs the tiles of the item before
    attend_item_by_warps(items.block(round), q, out);
  }
}

#endif

}  // namespace sinter
