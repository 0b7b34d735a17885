// tiled_attention by products of warpgroups, each with a role: the first loads tiles of keys and of
// values, the second publishes the block's work tiles and computes their queries, and each of the
// others multiplies 64 rows. Pipelines (kernels/tile/pipeline.cuh) hand tiles over, so that each
// role goes its own way from work tile to work tile.
//
// A multiplying warpgroup walks the tiles of keys of all its work tiles as one sequence. It
// multiplies with the keys of the next tile, which may be the first of the next work tile, before
// the values of this one, so that its own products run while it looks for the largest logits, and
// the other warpgroup's products while it computes weights and stores results:
//
//   products | q k0 |          | q k1 | weights0 v0 |    | q k2 | weights1 v1 | ...
//   softmax         | weights0 |      | weights1         |      | weights2 ...
#pragma once

#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/sums/wgmma.cuh"
#include "kernels/tiled_attention/attention_softmax.cuh"
#include "kernels/tiled_attention/attention_work_tiles.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

constexpr int kLoadingWarpgroups = 2;
// Threads that load tiles of keys and values.
template <typename Config>
constexpr int kTileLoaders = kBulkCopiesOf<Config> ? 32 : kWarpgroupThreads;

// A work tile, as the warpgroup of the queries publishes it.
template <typename Config>
struct AttentionWorkTile {
  int tile, head;  // of queries; tile -1: no work tile is left
  RowRange range;  // of keys that some row sees
  SeenKeys<Config> rows[Config::kRows];
};

// Pipelines and work tiles that the warpgroups of a block share.
template <typename Config>
struct AttentionShared {
  static constexpr int kWorkTiles = 2;

  Pipeline<kWorkTiles> work_tile_pipeline;
  Pipeline<Config::kQueryStages> query_pipeline;
  Pipeline<Config::kStages> key_pipeline, value_pipeline;
  AttentionWorkTile<Config> work_tiles[kWorkTiles];

  SINTER_DEVICE void init() {
    constexpr unsigned loaders = kTileLoaders<Config>;
    constexpr unsigned multiplying = Config::kRows / 16;  // warps
    work_tile_pipeline.init(kWarpgroupThreads, multiplying + loaders / 32);
    query_pipeline.init(kWarpgroupThreads, multiplying);
    key_pipeline.init(loaders, multiplying);
    value_pipeline.init(loaders, multiplying);
  }
};

// The warpgroup of the queries publishes the work tiles of this block and computes queries.
template <typename Config, typename Query>
SINTER_DEVICE void produce_queries(const AttentionTiles<Config>& tiles,
                                   AttentionShared<Config>& shared, const Query& q) {
  static_assert(Config::kRows == kWarpgroupThreads, "a thread publishes which keys a row sees");
  const int thread = thread_in_warpgroup();
  PipelineState work_tiles(shared.work_tile_pipeline);
  PipelineState queries(shared.query_pipeline);
#pragma unroll 1
  for (int round = 0; tiles.has(round); ++round) {
    const AttentionBlock<Config> block = tiles.block(round);
    SeenKeys<Config> row = block.seen_by(thread);
    const RowRange range = block.find_seen_range();
    if (Config::Mask::kHasTiles && range.high < range.low) row = {};
    work_tiles.producer_acquire();
    AttentionWorkTile<Config>& work_tile = shared.work_tiles[work_tiles.stage()];
    work_tile.tile = block.tile();
    work_tile.head = block.head();
    work_tile.range = range;
    work_tile.rows[thread] = row;
    work_tiles.producer_commit();
    queries.producer_acquire();
    block.template load_queries<kWarpgroupThreads>(q, queries.stage(), thread);
    fence_proxy_async();
    queries.producer_commit();
  }
  work_tiles.producer_acquire();
  shared.work_tiles[work_tiles.stage()].tile = -1;
  work_tiles.producer_commit();
}

// The tiles of keys of the block's work tiles, one after the other.
template <typename Config>
class TileWalk {
  using Block = AttentionBlock<Config>;
  using Operands = AttentionOperands<Config>;
  static constexpr bool kSkipsTiles = Block::kSkipsTiles;

 public:
  // At the first tile; the block has a work tile.
  SINTER_DEVICE TileWalk(const Operands& in, unsigned char* tiles, AttentionShared<Config>& shared)
      : in_(in),
        tiles_(tiles),
        shared_(shared),
        work_tiles_(shared.work_tile_pipeline),
        block_(in, 0, 0, tiles) {
    begin_work_tile();
  }

  SINTER_DEVICE const Block& block() const { return block_; }
  SINTER_DEVICE int tile() const { return tile_; }
  SINTER_DEVICE bool begins_work_tile() const { return tile_ == first_; }
  SINTER_DEVICE bool ends_work_tile() const { return next_tile() == end_; }
  // False after the last tile of the last work tile. All lanes of a warp call it.
  SINTER_DEVICE bool advance() {
    if constexpr (!kSkipsTiles) return ++tile_ < end_ || begin_work_tile();
    tile_ = next_;
    if (tile_ == end_) return begin_work_tile();
    find_next();
    return true;
  }

  // At a work tile's first tile of keys: which keys a row sees, until release_work_tile().
  SINTER_DEVICE SeenKeys<Config> seen_by(int row) const {
    return shared_.work_tiles[work_tiles_.stage()].rows[row];
  }
  SINTER_DEVICE void release_work_tile() { work_tiles_.consumer_release(); }

 private:
  SINTER_DEVICE bool begin_work_tile() {
    work_tiles_.consumer_wait();
    const AttentionWorkTile<Config>& work_tile = shared_.work_tiles[work_tiles_.stage()];
    if (work_tile.tile < 0) return false;
    block_ = Block(in_, work_tile.tile, work_tile.head, tiles_);
    block_.set_seen_range(work_tile.range);
    const SeenTiles tiles = block_.shown_tiles(work_tile.range);
    end_ = tiles.end;
    tile_ = first_ = tiles.first;
    find_next();
    return true;
  }
  // The tile to walk after this one. Where tiles are left out, it is found when the walk comes to
  // this tile, so that nobody waits for it at the end.
  SINTER_DEVICE int next_tile() const { return kSkipsTiles ? next_ : tile_ + 1; }
  SINTER_DEVICE void find_next() {
    if constexpr (kSkipsTiles) next_ = block_.next_tile(tile_ + 1, end_);
  }

  const Operands& in_;
  unsigned char* tiles_;
  AttentionShared<Config>& shared_;
  PipelineState<AttentionShared<Config>::kWorkTiles> work_tiles_;
  Block block_;
  int first_, tile_, end_;
  int next_ = 0;
};

// The first warpgroup loads tiles of keys and values in the order in which they are needed. With
// bulk copies a warp of it does: a whole tile is a copy by one thread, others are waited for.
template <typename Config>
class TileLoader {
  using Block = AttentionBlock<Config>;
  using Sizes = TiledSizes<Config>;
  static constexpr bool kBulkCopies = kBulkCopiesOf<Config>;

 public:
  SINTER_DEVICE TileLoader(AttentionShared<Config>& shared)
      : keys_(shared.key_pipeline), values_(shared.value_pipeline) {}

  SINTER_DEVICE void load(TileWalk<Config> walk) {
    bool more = true;
    load_keys(walk);
#pragma unroll 1
    while (more) {
      const Block block = walk.block();
      const int tile = walk.tile();
      more = walk.advance();
      if (more) load_keys(walk);
      load_values(block, tile);
    }
  }

 private:
  SINTER_DEVICE void load_keys(TileWalk<Config>& walk) {
    if (walk.begins_work_tile()) walk.release_work_tile();
    keys_.producer_acquire();
    const Block& block = walk.block();
    const int tile = walk.tile();
    if constexpr (kBulkCopies)
      if (block.has_whole_tile(tile))
        return copy(keys_, Sizes::key_bytes,
                    [&] { block.copy_keys(tile, keys_.stage(), keys_.full()); });
    block.template load_keys<kTileLoaders<Config>>(tile, keys_.stage(), thread_in_warpgroup());
    commit<Block::kCopiesKeys>(keys_);
  }
  SINTER_DEVICE void load_values(const Block& block, int tile) {
    values_.producer_acquire();
    if constexpr (kBulkCopies)
      if (block.has_whole_tile(tile))
        return copy(values_, Sizes::value_bytes,
                    [&] { block.copy_values(tile, values_.stage(), values_.full()); });
    block.template load_values<kTileLoaders<Config>>(tile, values_.stage(), thread_in_warpgroup());
    commit<Block::kCopiesValues>(values_);
  }
  // The first thread makes the bulk copies of a stage.
  template <typename Begin>
  SINTER_DEVICE static void copy(PipelineState<Config::kStages>& tiles, int bytes, Begin begin) {
    if (threadIdx.x != 0) return tiles.producer_commit();
    tiles.producer_expect(bytes);
    begin();
    tiles.advance();
  }
  template <bool copies>
  SINTER_DEVICE static void commit(PipelineState<Config::kStages>& tiles) {
    if constexpr (kBulkCopies) {
      cp_async_commit_group();
      cp_async_wait_group<0>();
      fence_proxy_async();
      tiles.producer_commit();
    } else if constexpr (copies) {
      tiles.producer_commit_copies();
    } else {
      tiles.producer_commit();
    }
  }
  PipelineState<Config::kStages> keys_, values_;
};

// A multiplying warpgroup computes the products, the softmax and the results of its 64 rows.
template <typename Config, typename Result>
class AttentionWarpgroup {
  using Block = AttentionBlock<Config>;
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;

 public:
  // `tiles`: shared memory for them, then for joined sums.
  SINTER_DEVICE AttentionWarpgroup(AttentionShared<Config>& shared, unsigned char* tiles)
      : joined_(joined_place<Config>(tiles), Config::kRows / 64 * kWarpgroupThreads,
                static_cast<int>(threadIdx.x) - kLoadingWarpgroups * kWarpgroupThreads),
        group_(warpgroup_index() - kLoadingWarpgroups),
        queries_(shared.query_pipeline),
        keys_(shared.key_pipeline),
        values_(shared.value_pipeline) {}

  SINTER_DEVICE void attend(TileWalk<Config> walk, const Result& out) {
    float dots[Sizes::keys / 2], sums[Sizes::value_width / 2] = {};
    unsigned weights[Sizes::keys / 4];
    do {
      begin_keys(walk, dots);
      wgmma_wait_group<0>(dots);
      end_keys(walk);
      AttentionSoftmax<Config> softmax = begin_work_tile(walk);
      softmax.end_segments(walk.tile());
      softmax.update_max(dots, walk.tile());
      softmax.exponentiate(dots, weights);
      AttentionEnds ends;  // of the sums when the products with the last values are added
#pragma unroll 1
      for (;;) {
        const Block block = walk.block();
        if (!kOverlapsWorkTiles && walk.ends_work_tile()) break;
        if (!walk.advance()) break;
        begin_keys(walk, dots);
        begin_values(block, sums, weights);
        wgmma_wait_group<1>(dots);
        end_keys(walk);
        const bool next_work_tile = kOverlapsWorkTiles && walk.begins_work_tile();
        if (next_work_tile) {
          softmax.finish(ends);
          softmax = begin_work_tile(walk);
        }
        const bool ended = softmax.end_segments(walk.tile());
        const bool grew = softmax.update_max(dots, walk.tile());
        wgmma_wait_group<0>(sums);
        values_.consumer_release();
        if (next_work_tile) {
          store_result(block, sums, ends, out);
        } else {
          if (ended) joined_.join(sums, softmax.ended());
          if (grew) softmax.scale_rows(sums, softmax.scale());
        }
        softmax.exponentiate(dots, weights);
      }
      begin_values(walk.block(), sums, weights);
      wgmma_wait_group<0>(sums);
      values_.consumer_release();
      softmax.finish(ends);
      store_result(walk.block(), sums, ends, out);
    } while (!kOverlapsWorkTiles && walk.advance());
  }

 private:
  // With one stage, the next work tile's queries are loaded after the last product with this one's
  // queries, so the work tiles do not overlap.
  static constexpr bool kOverlapsWorkTiles = Config::kQueryStages > 1;

  // The first of the lane's rows.
  SINTER_DEVICE int row() const { return 64 * group_ + first_row_in_warpgroup(); }
  SINTER_DEVICE AttentionSoftmax<Config> begin_work_tile(TileWalk<Config>& walk) const {
    const AttentionSoftmax<Config> softmax(walk.seen_by(row()), walk.seen_by(row() + 8),
                                           {walk.block(), row()}, {walk.block(), row()});
    walk.release_work_tile();
    return softmax;
  }
  // Stores the result of a work tile and sets the sums to zeros.
  SINTER_DEVICE void store_result(const Block& block, float (&sums)[Sizes::value_width / 2],
                                  const AttentionEnds& ends, const Result& out) {
    if (ends.joins) joined_.finish(sums, ends.ended);
    AttentionSoftmax<Config>::scale_rows(sums, ends.factors);
    block.store_result(sums, row(), ends, out);
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
  }

  // Begins the products of the queries with a tile of keys.
  SINTER_DEVICE void begin_keys(const TileWalk<Config>& walk, float (&dots)[Sizes::keys / 2]) {
    if (walk.begins_work_tile()) queries_.consumer_wait();
    keys_.consumer_wait();
    fence_tile();
    multiply_keys(walk.block(), dots);
  }
  // They are there.
  SINTER_DEVICE void end_keys(const TileWalk<Config>& walk) {
    keys_.consumer_release();
    if (walk.ends_work_tile()) queries_.consumer_release();
  }
  // Begins the products of the weights with the values of their tile.
  SINTER_DEVICE void begin_values(const Block& block, float (&sums)[Sizes::value_width / 2],
                                  unsigned (&weights)[Sizes::keys / 4]) {
    values_.consumer_wait();
    fence_tile();
    add_values(block, sums, weights);
  }

  // Copies by threads are no writes of the products' kind. Bulk copies are, and those beside them
  // are fenced by the loader.
  SINTER_DEVICE static void fence_tile() {
    if constexpr (!kBulkCopiesOf<Config>) fence_proxy_async();
  }
  SINTER_DEVICE void multiply_keys(const Block& block, float (&dots)[Sizes::keys / 2]) {
    multiply_tiles<T, Sizes::rows, Sizes::keys, Sizes::width>(
        dots, block.queries(queries_.stage()), 64 * group_, block.keys(keys_.stage()), false);
    wgmma_commit_group();
  }
  SINTER_DEVICE void add_values(const Block& block, float (&sums)[Sizes::value_width / 2],
                                unsigned (&weights)[Sizes::keys / 4]) {
    multiply_rows<T, Sizes::keys, Sizes::value_width>(sums, weights, block.values(values_.stage()));
    wgmma_commit_group();
  }
  JoinedSums<Config> joined_;
  int group_;
  PipelineState<Config::kQueryStages> queries_;
  PipelineState<Config::kStages> keys_, values_;
};

template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend_by_warpgroups(const AttentionTiles<Config>& work_tiles,
                                        const AttentionOperands<Config>& in, unsigned char* tiles,
                                        const Query& q, const Result& out) {
  static_assert(Config::kThreads == (kLoadingWarpgroups + Config::kRows / 64) * kWarpgroupThreads,
                "two warpgroups load, and one multiplies 64 rows");
  __shared__ AttentionShared<Config> shared;
  if (threadIdx.x == 0) {
    shared.init();
    fence_mbarrier_init();
  }
  __syncthreads();
  if (!work_tiles.has(0)) return;  // a launch may have more blocks than work tiles
  // The launch has 128 registers a thread, which is what the four warpgroups share.
  if (threadIdx.x < kWarpgroupThreads) {
    setmaxnreg_dec<40>();
    if (threadIdx.x >= kTileLoaders<Config>) return;
    TileLoader<Config>(shared).load({in, tiles, shared});
  } else if (threadIdx.x < 2 * kWarpgroupThreads) {
    setmaxnreg_dec<56>();
    produce_queries(work_tiles, shared, q);
  } else {
    setmaxnreg_inc<208>();
    AttentionWarpgroup<Config, Result>(shared, tiles).attend({in, tiles, shared}, out);
  }
}

}  // namespace sinter
#endif
