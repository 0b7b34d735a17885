// tiled_attention by products of warpgroups, each with a role: the first loads tiles of keys and of
// values into stages of shared memory, the second computes queries, and each of the others has 64
// rows of a block. Barriers hand the stages over, so that each goes its own way from item to item.
//
// A multiplying warpgroup walks the tiles of all its items as one sequence. It multiplies with the
// keys of the next tile, which may be the first of the next item, before the values of this one, so
// that products run while it looks for the largest logits, and those of the other warpgroup while
// it computes weights and stores results:
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

constexpr int kRoleThreads = 128;  // a warpgroup
constexpr int kLoadingRoles = 2;

// A buffer's barriers: `full` ends a phase when it is filled, `empty` when all warps have read it.
struct BufferBarriers {
  Barrier full, empty;

  SINTER_DEVICE void set_up(unsigned reading_warps) {
    set_up_barrier(&full, kRoleThreads);
    set_up_barrier(&empty, reading_warps);
  }
};

// An item, as the warpgroup of the queries tells it to the others.
template <typename Config>
struct AttentionItem {
  int tile, head;  // of queries; tile -1: no item is left
  SeenRange range;
  SeenKeys rows[Config::kRows];
};

// The barriers and items that the warpgroups of a block share.
template <typename Config>
struct AttentionShared {
  static constexpr int kItems = 2;

  BufferBarriers for_items[kItems], for_queries[Config::kQueryStages], for_keys[Config::kStages],
      for_values[Config::kStages];
  AttentionItem<Config> items[kItems];

  SINTER_DEVICE void set_up() {
    constexpr unsigned multiplying = Config::kRows / 16, loading = kRoleThreads / 32;
    for (BufferBarriers& buffer : for_items) buffer.set_up(multiplying + loading);
    for (BufferBarriers& buffer : for_queries) buffer.set_up(multiplying);
    for (BufferBarriers& buffer : for_keys) buffer.set_up(multiplying);
    for (BufferBarriers& buffer : for_values) buffer.set_up(multiplying);
  }
};

// A role's place in a ring of buffers.
template <int stages>
class Ring {
 public:
  SINTER_DEVICE Ring(BufferBarriers (&buffers)[stages]) : buffers_(buffers) {}

  SINTER_DEVICE int stage() const { return stage_; }
  SINTER_DEVICE void wait_until_empty() const {
    wait_for_phase(&buffers_[stage_].empty, phase_ ^ 1);
  }
  SINTER_DEVICE void wait_until_full() const { wait_for_phase(full(), phase_); }
  // The warp is done with the buffer, and goes on to the next.
  SINTER_DEVICE void release() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(&buffers_[stage_].empty);
    advance();
  }
  // The thread has filled its part of the buffer, and goes on to the next.
  SINTER_DEVICE void fill() {
    arrive(full());
    advance();
  }
  SINTER_DEVICE void fill_when_copied() {
    arrive_when_copied(full());
    advance();
  }

 private:
  SINTER_DEVICE Barrier* full() const { return &buffers_[stage_].full; }
  SINTER_DEVICE void advance() {
    if (++stage_ < stages) return;
    stage_ = 0;
    phase_ ^= 1;
  }

  BufferBarriers (&buffers_)[stages];
  int stage_ = 0;
  unsigned phase_ = 0;
};

// The warpgroup of the queries publishes the block's items to the others and computes queries.
template <typename Config, typename Query>
SINTER_DEVICE void give_items(const AttentionItems<Config>& items, AttentionShared<Config>& shared,
                              const Query& q) {
  static_assert(Config::kRows == kRoleThreads, "a thread tells of a row which keys it sees");
  const int thread = static_cast<int>(threadIdx.x) % kRoleThreads;
  Ring told(shared.for_items);
  Ring queries(shared.for_queries);
#pragma unroll 1
  for (int round = 0; items.has(round); ++round) {
    const AttentionBlock<Config> block = items.block(round);
    const SeenKeys row = block.seen_by(thread);
    const SeenRange range = block.find_seen_range();
    told.wait_until_empty();
    AttentionItem<Config>& item = shared.items[told.stage()];
    item.tile = block.tile();
    item.head = block.head();
    item.range = range;
    item.rows[thread] = row;
    told.fill();
    queries.wait_until_empty();
    block.template take_queries<kRoleThreads>(q, queries.stage(), thread);
    show_to_products();
    queries.fill();
  }
  told.wait_until_empty();
  shared.items[told.stage()].tile = -1;
  told.fill();
}

// The tiles of keys of the block's items, one after the other.
template <typename Config>
class TileWalk {
  using Block = AttentionBlock<Config>;
  using Operands = AttentionOperands<typename Config::Element>;

 public:
  // At the first tile; a block has an item.
  SINTER_DEVICE TileWalk(const Operands& in, unsigned char* tiles, AttentionShared<Config>& shared)
      : in_(in), tiles_(tiles), shared_(shared), told_(shared.for_items), block_(in, 0, 0, tiles) {
    begin_item();
  }

  SINTER_DEVICE const Block& block() const { return block_; }
  SINTER_DEVICE int tile() const { return tile_; }
  SINTER_DEVICE bool begins_item() const { return tile_ == first_; }
  SINTER_DEVICE bool ends_item() const { return tile_ + 1 == end_; }
  // False after the last tile of the last item.
  SINTER_DEVICE bool advance() { return ++tile_ < end_ || begin_item(); }

  // At an item's first tile: which keys a row sees, until done_with_item().
  SINTER_DEVICE SeenKeys seen_by(int row) const { return shared_.items[told_.stage()].rows[row]; }
  SINTER_DEVICE void done_with_item() { told_.release(); }

 private:
  SINTER_DEVICE bool begin_item() {
    told_.wait_until_full();
    const AttentionItem<Config>& item = shared_.items[told_.stage()];
    if (item.tile < 0) return false;
    block_ = Block(in_, item.tile, item.head, tiles_);
    block_.set_seen_range(item.range);
    const SeenTiles tiles = Block::tiles_of(item.range);
    tile_ = first_ = tiles.first;
    end_ = tiles.end;
    return true;
  }

  const Operands& in_;
  unsigned char* tiles_;
  AttentionShared<Config>& shared_;
  Ring<AttentionShared<Config>::kItems> told_;
  Block block_;
  int first_, tile_, end_;
};

// The first warpgroup loads tiles of keys and values in the order in which they are needed.
template <typename Config>
class TileLoader {
  using Block = AttentionBlock<Config>;

 public:
  SINTER_DEVICE TileLoader(AttentionShared<Config>& shared)
      : keys_(shared.for_keys), values_(shared.for_values) {}

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
    if (walk.begins_item()) walk.done_with_item();
    keys_.wait_until_empty();
    walk.block().template load_keys<kRoleThreads>(walk.tile(), keys_.stage(), thread());
    hand_over<Block::kCopiesKeys>(keys_);
  }
  SINTER_DEVICE void load_values(const Block& block, int tile) {
    values_.wait_until_empty();
    block.template load_values<kRoleThreads>(tile, values_.stage(), thread());
    hand_over<Block::kCopiesValues>(values_);
  }
  template <bool copies>
  SINTER_DEVICE static void hand_over(Ring<Config::kStages>& tiles) {
    if constexpr (copies)
      tiles.fill_when_copied();
    else
      tiles.fill();
  }
  SINTER_DEVICE static int thread() { return static_cast<int>(threadIdx.x) % kRoleThreads; }

  Ring<Config::kStages> keys_, values_;
};

// A multiplying warpgroup computes the products, the softmax and the results of its 64 rows.
template <typename Config, typename Result>
class AttentionWarpgroup {
  using Block = AttentionBlock<Config>;
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;

 public:
  SINTER_DEVICE AttentionWarpgroup(AttentionShared<Config>& shared)
      : group_(__shfl_sync(0xffffffffu,
                           static_cast<int>(threadIdx.x) / kRoleThreads - kLoadingRoles, 0)),
        queries_(shared.for_queries),
        keys_(shared.for_keys),
        values_(shared.for_values) {}

  SINTER_DEVICE void attend(TileWalk<Config> walk, const Result& out) {
    float dots[Sizes::keys / 2], sums[Sizes::value_width / 2] = {};
    unsigned weights[Sizes::keys / 4];
    do {
      begin_keys(walk, dots);
      wait_for_products<0>(dots);
      end_keys(walk);
      AttentionSoftmax<Config> softmax = begin_item(walk);
      softmax.grow(dots, walk.tile());
      softmax.weigh(dots, weights);
      float factors[2];  // of the sums when the products with the last values are added
#pragma unroll 1
      for (;;) {
        const Block block = walk.block();
        if (!kItemsAhead && walk.ends_item()) break;
        if (!walk.advance()) break;
        begin_keys(walk, dots);
        begin_values(block, sums, weights);
        wait_for_products<1>(dots);
        end_keys(walk);
        const bool next_item = kItemsAhead && walk.begins_item();
        if (next_item) {
          softmax.finish(factors);
          softmax = begin_item(walk);
        }
        const bool grew = softmax.grow(dots, walk.tile());
        wait_for_products<0>(sums);
        values_.release();
        if (next_item)
          give(block, sums, factors, out);
        else if (grew)
          softmax.scale_rows(sums, softmax.scale());
        softmax.weigh(dots, weights);
      }
      begin_values(walk.block(), sums, weights);
      wait_for_products<0>(sums);
      values_.release();
      softmax.finish(factors);
      give(walk.block(), sums, factors, out);
    } while (!kItemsAhead && walk.advance());
  }

 private:
  // With one stage of queries those of the next item come after the last product with this item's,
  // which then ends by itself.
  static constexpr bool kItemsAhead = Config::kQueryStages > 1;

  // The first of the lane's rows.
  SINTER_DEVICE int row() const {
    const int thread = static_cast<int>(threadIdx.x) % kRoleThreads;
    return 64 * group_ + thread / 32 * 16 + thread % 32 / 4;
  }
  SINTER_DEVICE AttentionSoftmax<Config> begin_item(TileWalk<Config>& walk) const {
    const AttentionSoftmax<Config> softmax(walk.seen_by(row()), walk.seen_by(row() + 8));
    walk.done_with_item();
    return softmax;
  }
  // Stores the result of an item; sums are zeros then.
  SINTER_DEVICE void give(const Block& block, float (&sums)[Sizes::value_width / 2],
                          const float (&factors)[2], const Result& out) const {
    AttentionSoftmax<Config>::scale_rows(sums, factors);
    block.give(sums, row(), out);
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
  }

  // Begins the products of the queries with a tile of keys.
  SINTER_DEVICE void begin_keys(const TileWalk<Config>& walk, float (&dots)[Sizes::keys / 2]) {
    if (walk.begins_item()) queries_.wait_until_full();
    keys_.wait_until_full();
    show_to_products();  // copies are no writes of the products' kind
    multiply_keys(walk.block(), dots);
  }
  // They are there.
  SINTER_DEVICE void end_keys(const TileWalk<Config>& walk) {
    keys_.release();
    if (walk.ends_item()) queries_.release();
  }
  // Begins the products of the weights with the values of their tile.
  SINTER_DEVICE void begin_values(const Block& block, float (&sums)[Sizes::value_width / 2],
                                  unsigned (&weights)[Sizes::keys / 4]) {
    values_.wait_until_full();
    show_to_products();
    add_values(block, sums, weights);
  }

  SINTER_DEVICE void multiply_keys(const Block& block, float (&dots)[Sizes::keys / 2]) {
    constexpr int row_bytes = attention_panel_row(Sizes::width);
    constexpr int panel = row_bytes / 2;  // elements of a row of a panel
    const MatrixTile queries = matrix_tile<row_bytes>(
        block.queries(queries_.stage()) + 64 * group_ * row_bytes, 8 * row_bytes, 16);
    const MatrixTile keys = matrix_tile<row_bytes>(block.keys(keys_.stage()), 8 * row_bytes, 16);
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
  SINTER_DEVICE void add_values(const Block& block, float (&sums)[Sizes::value_width / 2],
                                unsigned (&weights)[Sizes::keys / 4]) {
    constexpr int row_bytes = attention_panel_row(Sizes::value_width);
    constexpr int panel = attention_panel(Sizes::keys, Sizes::value_width);
    const MatrixTile values =
        matrix_tile<row_bytes>(block.values(values_.stage()), 8 * row_bytes, panel);
    // An instruction has fewer registers than the launch gives to a thread.
    constexpr int all = Sizes::value_width, first = all <= 192 ? all : 128, rest = all - first;
    begin_products(sums);
#pragma unroll
    for (int key = 0; key < Sizes::keys; key += 16) {
      const MatrixTile of_keys = values.after(key * row_bytes);
      WarpgroupProduct<first, T>::add(columns<0, first>(sums), weights + key / 4, of_keys);
      if constexpr (rest > 0)
        WarpgroupProduct<rest, T>::add(columns<first, rest>(sums), weights + key / 4,
                                       of_keys.after(first * 2 / row_bytes * panel));
    }
    end_products();
  }
  template <int first, int count, int all>
  SINTER_DEVICE static float (&columns(float (&sums)[all]))[count / 2] {
    return *reinterpret_cast<float(*)[count / 2]>(sums + first / 2);
  }

  int group_;
  Ring<Config::kQueryStages> queries_;
  Ring<Config::kStages> keys_, values_;
};

template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend_by_warpgroups(const AttentionItems<Config>& items,
                                        const AttentionOperands<typename Config::Element>& in,
                                        unsigned char* tiles, const Query& q, const Result& out) {
  static_assert(Config::kThreads == (kLoadingRoles + Config::kRows / 64) * kRoleThreads,
                "two warpgroups load, and one multiplies 64 rows");
  __shared__ AttentionShared<Config> shared;
  if (threadIdx.x == 0) {
    shared.set_up();
    show_barriers_to_block();
  }
  __syncthreads();
  if (!items.has(0)) return;  // a launch may have more blocks than items
  // The launch has 128 registers a thread, which is what the four warpgroups share.
  if (threadIdx.x < kRoleThreads) {
    give_registers_back<40>();
    TileLoader<Config>(shared).load({in, tiles, shared});
  } else if (threadIdx.x < 2 * kRoleThreads) {
    give_registers_back<56>();
    give_items(items, shared, q);
  } else {
    take_registers<208>();
    AttentionWarpgroup<Config, Result>(shared).attend({in, tiles, shared}, out);
  }
}

}  // namespace sinter
#endif
