// tiled_attention by products of warpgroups. The first warpgroup computes queries and loads tiles
// of keys and of values into stages of shared memory; each of the others has 64 rows of a block.
// Barriers hand the stages over, so that each goes its own way from item to item: the next queries
// and tiles come while the last item's result is stored.
//
// A warpgroup multiplies with the keys of the next tile before the values of this one, so that
// products run while it computes weights:
//
//   products | q k0 |          | q k1 | weights0 v0 |    | q k2 | weights1 v1 | ...
//   softmax         | weights0 |      | weights1         |      | weights2 ...
#pragma once

#include "kernels/attention/attention_items.cuh"
#include "kernels/attention/attention_softmax.cuh"
#include "kernels/common/barriers.cuh"
#include "kernels/common/wgmma.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

constexpr int kLoadingThreads = 128;

// Of a buffer: `full` ends a phase when it is filled, `empty` when all warps are done with it.
struct BufferBarriers {
  Barrier full, empty;

  SINTER_DEVICE void set_up(unsigned filling_threads, unsigned reading_warps) {
    set_up_barrier(&full, filling_threads);
    set_up_barrier(&empty, reading_warps);
  }
};

// What the warpgroups of a block tell one another.
template <typename Config>
struct AttentionShared {
  BufferBarriers queries[Config::kQueryStages], keys[Config::kStages], values[Config::kStages];
  // Of the item whose queries are there.
  SeenKeys rows[Config::kQueryStages][Config::kRows];
  SeenTiles tiles[Config::kQueryStages];

  SINTER_DEVICE void set_up() {
    constexpr unsigned computing_warps = Config::kRows / 16;
    for (BufferBarriers& buffer : queries) buffer.set_up(kLoadingThreads, computing_warps);
    for (int s = 0; s < Config::kStages; ++s) {
      keys[s].set_up(kLoadingThreads, computing_warps);
      values[s].set_up(kLoadingThreads, computing_warps);
    }
  }
};

// The stage of a tile of an item, and the parities of the stages' phases.
template <int stages>
struct Stages {
  unsigned phases = 0;

  SINTER_DEVICE unsigned phase(int stage) const { return phases >> stage & 1; }
  SINTER_DEVICE void advance(int stage) { phases ^= 1u << stage; }
};

// What the loading warpgroup does.
template <typename Config, typename Query>
class AttentionLoader {
  using Block = AttentionBlock<Config>;
  static_assert(Config::kRows == kLoadingThreads, "a thread tells of a row which keys it sees");

 public:
  SINTER_DEVICE AttentionLoader(AttentionShared<Config>& shared, const Query& q)
      : shared_(shared), q_(q), thread_(static_cast<int>(threadIdx.x)) {}

  SINTER_DEVICE void load(Block block, int query_stage) {
    block.find_seen_keys();
    const SeenTiles tiles = block.seen_tiles();
    const int first = tiles.first, count = tiles.end - first;
    if (count > 0) load_keys(block, first, 0);
    give_queries(block, tiles, query_stage);
    // In the order in which the tiles are needed.
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      if (i + 1 < count) load_keys(block, first + i + 1, (i + 1) % Config::kStages);
      load_values(block, first + i, i % Config::kStages);
    }
  }

 private:
  SINTER_DEVICE void give_queries(const Block& block, SeenTiles tiles, int stage) {
    const SeenKeys seen = block.seen_by(thread_);
    wait_for_phase(&shared_.queries[stage].empty, queries_.phase(stage) ^ 1);
    queries_.advance(stage);
    shared_.rows[stage][thread_] = seen;
    shared_.tiles[stage] = tiles;
    if (tiles.first < tiles.end) block.template take_queries<kLoadingThreads>(q_, stage, thread_);
    show_to_products();
    arrive(&shared_.queries[stage].full);
  }
  SINTER_DEVICE void load_keys(const Block& block, int tile, int stage) {
    wait_for_phase(&shared_.keys[stage].empty, keys_.phase(stage) ^ 1);
    keys_.advance(stage);
    block.template load_keys<kLoadingThreads>(tile, stage, thread_);
    hand_over<Block::kCopiesKeys>(&shared_.keys[stage].full);
  }
  SINTER_DEVICE void load_values(const Block& block, int tile, int stage) {
    wait_for_phase(&shared_.values[stage].empty, values_.phase(stage) ^ 1);
    values_.advance(stage);
    block.template load_values<kLoadingThreads>(tile, stage, thread_);
    hand_over<Block::kCopiesValues>(&shared_.values[stage].full);
  }
  template <bool copies>
  SINTER_DEVICE static void hand_over(Barrier* full) {
    if constexpr (copies)
      arrive_when_copied(full);
    else
      arrive(full);
  }

  AttentionShared<Config>& shared_;
  const Query& q_;
  int thread_;
  Stages<Config::kQueryStages> queries_;
  Stages<Config::kStages> keys_, values_;
};

// What a multiplying warpgroup does.
template <typename Config, typename Result>
class AttentionWarpgroup {
  using Block = AttentionBlock<Config>;
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;

 public:
  SINTER_DEVICE AttentionWarpgroup(AttentionShared<Config>& shared)
      : shared_(shared),
        group_(__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128 - 1, 0)) {}

  SINTER_DEVICE void attend(const Block& block, const Result& out, int query_stage) {
    const int row = 64 * group_ + static_cast<int>(threadIdx.x) % 128 / 32 * 16 +
                    static_cast<int>(threadIdx.x) % 32 / 4;
    wait_for_phase(&shared_.queries[query_stage].full, queries_.phase(query_stage));
    queries_.advance(query_stage);
    const SeenKeys* const rows = shared_.rows[query_stage];
    AttentionSoftmax<Config> softmax(rows[row], rows[row + 8]);
    const int first = shared_.tiles[query_stage].first,
              count = shared_.tiles[query_stage].end - first;
    float sums[Sizes::value_width / 2] = {};
    if (count > 0) {
      float dots[Sizes::keys / 2];
      unsigned weights[Sizes::keys / 4];
      wait_for_keys(0);
      show_to_products();
      multiply_keys(block, dots, query_stage, 0);
      wait_for_products<0>(dots);
      release(&shared_.keys[0].empty);
      softmax.grow(dots, first);
      softmax.weigh(dots, weights);
#pragma unroll 1
      for (int i = 1; i < count; ++i) {
        const int stage = i % Config::kStages, before = (i - 1) % Config::kStages;
        wait_for_values(before);
        wait_for_keys(stage);
        show_to_products();
        multiply_keys(block, dots, query_stage, stage);
        add_values(block, sums, weights, before);
        wait_for_products<1>(dots);
        release(&shared_.keys[stage].empty);
        const bool grew = softmax.grow(dots, first + i);
        wait_for_products<0>(sums);
        release(&shared_.values[before].empty);
        if (grew) softmax.scale_rows(sums, softmax.scale());
        softmax.weigh(dots, weights);
      }
      release(&shared_.queries[query_stage].empty);
      const int last = (count - 1) % Config::kStages;
      wait_for_values(last);
      show_to_products();
      add_values(block, sums, weights, last);
      wait_for_products<0>(sums);
      release(&shared_.values[last].empty);
    } else {
      release(&shared_.queries[query_stage].empty);
    }
    softmax.finish(sums);
    block.give(sums, row, out);
  }

 private:
  SINTER_DEVICE static void release(Barrier* empty) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(empty);
  }

  // show_to_products() must follow: copies are no writes of the products' kind.
  SINTER_DEVICE void wait_for_keys(int stage) {
    wait_for_phase(&shared_.keys[stage].full, keys_.phase(stage));
    keys_.advance(stage);
  }
  SINTER_DEVICE void wait_for_values(int stage) {
    wait_for_phase(&shared_.values[stage].full, values_.phase(stage));
    values_.advance(stage);
  }

  // Begins the products of the queries with the keys of a stage.
  SINTER_DEVICE void multiply_keys(const Block& block, float (&dots)[Sizes::keys / 2],
                                   int query_stage, int stage) {
    constexpr int row_bytes = attention_panel_row(Sizes::width);
    constexpr int panel = row_bytes / 2;  // elements of a row of a panel
    const MatrixTile queries = matrix_tile<row_bytes>(
        block.queries(query_stage) + 64 * group_ * row_bytes, 8 * row_bytes, 16);
    const MatrixTile keys = matrix_tile<row_bytes>(block.keys(stage), 8 * row_bytes, 16);
    begin_products(dots);
#pragma unroll
    for (int k = 0; k < Sizes::width; k += 16) {
      const int in_panel = k % panel * 2;
      WarpgroupProduct<Sizes::keys, T>::multiply(
          dots, queries.after(k / panel * attention_panel(Sizes::rows, Sizes::width) + in_panel),
          keys.after(k / panel * attention_panel(Sizes::keys, Sizes::width) + in_panel), k > 0);
    }
    end_products();
  }
  // Begins the products of the weights with the values of a stage.
  SINTER_DEVICE void add_values(const Block& block, float (&sums)[Sizes::value_width / 2],
                                unsigned (&weights)[Sizes::keys / 4], int stage) {
    constexpr int row_bytes = attention_panel_row(Sizes::value_width);
    const MatrixTile values = matrix_tile<row_bytes>(
        block.values(stage), 8 * row_bytes, attention_panel(Sizes::keys, Sizes::value_width));
    begin_products(sums);
#pragma unroll
    for (int key = 0; key < Sizes::keys; key += 16)
      WarpgroupProduct<Sizes::value_width, T>::add(sums, weights + key / 4,
                                                   values.after(key * row_bytes));
    end_products();
  }

  AttentionShared<Config>& shared_;
  int group_;
  Stages<Config::kQueryStages> queries_;
  Stages<Config::kStages> keys_, values_;
};

template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend_by_warpgroups(const AttentionItems<Config>& items, const Query& q,
                                        const Result& out) {
  static_assert(Config::kThreads == kLoadingThreads + 2 * Config::kRows, "a warpgroup has 64 rows");
  __shared__ AttentionShared<Config> shared;
  if (threadIdx.x == 0) {
    shared.set_up();
    show_barriers_to_block();
  }
  __syncthreads();
  // The launch has 168 registers a thread, which is what the three warpgroups share.
  if (threadIdx.x < kLoadingThreads) {
    give_registers_back<88>();
    AttentionLoader<Config, Query> loader(shared, q);
    for (int round = 0; items.has(round); ++round)
      loader.load(items.block(round), round % Config::kQueryStages);
  } else {
    take_registers<208>();
    AttentionWarpgroup<Config, Result> warpgroup(shared);
    for (int round = 0; items.has(round); ++round)
      warpgroup.attend(items.block(round), out, round % Config::kQueryStages);
  }
}

}  // namespace sinter
#endif
