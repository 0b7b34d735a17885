// tiled_attention by products of warps: a warp has 16 rows of the block. All warps load a tile of
// keys while they multiply with the values of the tile before, and its values while they compute
// the dot products with the keys:
//
//   load      | keys 0 | values 0 | keys 1      | values 1 | keys 2      | ...
//   multiply           | q k      | weights v   | q k      | weights v   | ...
//
// Warps beyond the rows of the block only load (a plan for warpgroups on a device without them).
#pragma once

#include "kernels/tile/sums/mma.cuh"
#include "kernels/tiled_attention/attention_softmax.cuh"
#include "kernels/tiled_attention/attention_work_tiles.cuh"

namespace sinter {

template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend_work_tile_by_warps(AttentionBlock<Config> block, const Query& q,
                                             const Result& out) {
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;
  const int thread = static_cast<int>(threadIdx.x), row0 = thread / 32 * 16;
  const bool computes = row0 < Sizes::rows;
  const RowRange range = block.find_seen_range();
  block.set_seen_range(range);
  const SeenTiles tiles = block.shown_tiles(range);
  const int end = tiles.end;
  int tile = tiles.first;
  if (tile < end) block.template load_keys<Config::kThreads>(tile, 0, thread);
  cp_async_commit_group();
  block.template load_queries<Config::kThreads>(q, 0, thread);
  const int row = (computes ? row0 : 0) + thread % 32 / 4;
  AttentionSoftmax<Config> softmax(block.seen_within(range, row), block.seen_within(range, row + 8),
                                   {block, row}, {block, row});
  JoinedSums<Config> joined(joined_place<Config>(block.queries(0)), Config::kThreads, thread);
  float sums[Sizes::value_width / 2] = {};
#pragma unroll 1
  for (int next; tile < end; tile = next) {
    next = block.next_tile(tile + 1, end);
    cp_async_wait_group<0>();
    __syncthreads();  // the keys are there, and the values are no longer needed
    block.template load_values<Config::kThreads>(tile, 0, thread);
    cp_async_commit_group();
    unsigned weights[Sizes::keys / 4];
    if (computes) {
      float dots[Sizes::keys / 2];
      multiply_tiles_by_warp<T, Sizes::rows, Sizes::keys, Sizes::width>(dots, block.queries(0),
                                                                        row0, block.keys(0));
      if (softmax.end_segments(tile)) joined.join(sums, softmax.ended());
      if (softmax.update_max(dots, tile)) softmax.scale_rows(sums, softmax.scale());
      softmax.exponentiate(dots, weights);
    }
    cp_async_wait_group<0>();
    __syncthreads();  // the values are there, and the keys are no longer needed
    if (next < end) block.template load_keys<Config::kThreads>(next, 0, thread);
    cp_async_commit_group();
    if (computes)
      multiply_rows_by_warp<T, Sizes::keys, Sizes::value_width>(sums, weights, block.values(0));
  }
  cp_async_wait_group<0>();
  if (!computes) return;
  AttentionEnds ends;
  softmax.finish(ends);
  if (ends.joins) joined.finish(sums, ends.ended);
  softmax.scale_rows(sums, ends.factors);
  block.store_result(sums, row, ends, out);
}

template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend_by_warps(const AttentionTiles<Config>& work_tiles, const Query& q,
                                   const Result& out) {
  for (int round = 0; work_tiles.has(round); ++round) {
    if (round > 0) __syncthreads();  // nobody needs the tiles of the work tile before
    attend_work_tile_by_warps(work_tiles.block(round), q, out);
  }
}

}  // namespace sinter
