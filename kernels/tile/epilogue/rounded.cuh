// Tiles of a product's result in shared memory: the warpgroups that multiply round their sums and
// leave them there, a tile each, and the warpgroups of the epilogue take them
// (kernels/products/many.cuh).
#pragma once

#include "kernels/common/ahead_loads.cuh"
#include "kernels/isa/bar.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/sums/fragment.cuh"
#include "kernels/tile/tiles/work_tile.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// Config: as of ManyTokens, whose kEpilogueGroups warpgroups follow two that multiply in turns.
// Tiles: the order of the tiles, such as CachedTiles.
template <typename Config, typename Tiles>
class RoundedTiles {
  using Rounded = typename Config::ResultElement;
  static constexpr int kTiles = Config::kInTurns ? 2 : 1;
  static constexpr int kSlabs = Config::kRows / 64;
  static constexpr int kChunks = Config::kColumns / 8;  // of a row of a tile
  static constexpr int kThreads = Config::kEpilogueGroups * kWarpgroupThreads;
  // The rows of a tile that a thread of the epilogue has, and those whose inputs are in registers.
  static constexpr int kOwnRows = 8, kAheadRows = 2;

 public:
  using Barriers = Pipeline<kTiles>;
  static SINTER_DEVICE void init(Barriers& barriers) {
    barriers.init(kWarpgroupThreads / 32, kThreads / 32);
  }

  // `shared`: memory of two tiles. `rows`: of the result.
  SINTER_DEVICE RoundedTiles(Barriers& barriers, unsigned char* shared, const Tiles& tiles,
                             long long rows)
      : stage_(barriers), shared_(shared), tiles_(tiles), rows_(rows) {}

  // For warpgroup `group` of those that multiply, before its first tile.
  SINTER_DEVICE void begin_producing(int group) { stage_.advance(group); }
  // Rounds and leaves a tile: a lane has pairs of elements of two rows of each slab of 64.
  SINTER_DEVICE void produce(const float (&sums)[kSlabs][Config::kColumns / 2]) {
    stage_.producer_acquire();
    const int row = first_row_in_warpgroup(), word = 4 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      unsigned char* to =
          stage_tile() + tile_offset(Config::kRows, Config::kColumns, row, chunk) + word;
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float* pair = sums[slab] + 4 * chunk + 2 * half;
          // Rows 8 apart have their chunks in the same places of a panel's row.
          *reinterpret_cast<unsigned*>(to +
                                       (64 * slab + 8 * half) * tile_panel_row(Config::kColumns)) =
              pack(static_cast<const Rounded*>(nullptr), pair[0], pair[1]);
        }
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(stage_.full());
    stage_.advance(kTiles);
  }

  // The epilogue of all tiles. Thread `thread` of its warpgroups has 8 columns of 8 neighbouring
  // rows of each tile, row by row. The inputs of two rows are loaded ahead, also of the next
  // tile's, which are brought into the L2 cache a tile ahead.
  template <typename Result>
  SINTER_DEVICE void consume(int thread, const Result& result) {
    static_assert(Config::kRows == kThreads / kChunks * kOwnRows,
                  "the threads have all rows and columns of a tile");
    if (!tiles_.has(0)) return;
    const int chunk = thread % kChunks, own_row = thread / kChunks * kOwnRows;
    AheadWords words[kAheadRows];
    Part part = part_of(tiles_.tile(0), own_row, chunk);
#pragma unroll
    for (int row = 0; row < kAheadRows; ++row) load_ahead(part, row, result, words[row]);
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round) {
      const bool has_next = tiles_.has(round + 1);
      const WorkTile of_next = tiles_.tile(has_next ? round + 1 : round);
      Part next = part_of(of_next, own_row, chunk);
      if (has_next)
        prefetch_inputs(thread, of_next, result);
      else
        next.rows = 0;
      unsigned char* const tile = stage_tile();
      Chunk sums = {};
      stage_.consumer_wait();
#pragma unroll 1
      for (int first = 0; first < kOwnRows; first += kAheadRows) {
#pragma unroll
        for (int i = 0; i < kAheadRows; ++i) {
          const int row = first + i;
          Chunk values;
          widen(values, static_cast<const Rounded*>(nullptr),
                *reinterpret_cast<const uint4*>(
                    tile + tile_offset(Config::kRows, Config::kColumns, own_row + row, chunk)));
          if (row < part.rows) result.set_chunk(part.at(row), values, TakenLoads(words[i], sums));
          // Chosen by number: chosen by reference, both would stand in local memory.
          const bool in_next = row + kAheadRows >= kOwnRows;
          const Part ahead{in_next ? next.first : part.first, in_next ? next.rows : part.rows};
          load_ahead(ahead, (row + kAheadRows) % kOwnRows, result, words[i]);
        }
      }
      if constexpr (Config::kSums) store_sums(thread, sums, tile, tiles_.tile(round), result);
      stage_.consumer_release();
      part = next;
    }
  }

 private:
  SINTER_DEVICE unsigned char* stage_tile() const {
    return shared_ + stage_.stage() * tile_bytes(Config::kRows, Config::kColumns);
  }

  // A thread's part of a tile: the element of its first row, and how many of its rows the result
  // has.
  struct Part {
    long long first;
    int rows;
    SINTER_DEVICE long long at(int row) const {
      return first + static_cast<long long>(row) * Config::kResultColumns;
    }
  };
  SINTER_DEVICE Part part_of(const WorkTile& tile, int own_row, int chunk) const {
    const int row = tile.token + own_row, column = tile.matrix_row + 8 * chunk;
    const long long left = column < Config::kResultColumns ? rows_ - row : 0;
    return {static_cast<long long>(row) * Config::kResultColumns + column,
            static_cast<int>(left < kOwnRows ? left : kOwnRows)};
  }
  template <typename Result>
  static SINTER_DEVICE void load_ahead(const Part& part, int row, const Result& result,
                                       AheadWords& words) {
    if (row < part.rows) result.issue_loads(part.at(row), words);
  }
  // Each thread brings lines of 64 elements.
  template <typename Result>
  SINTER_DEVICE void prefetch_inputs(int thread, const WorkTile& tile, const Result& result) const {
    constexpr int of_row = Config::kColumns / 64, lines = Config::kRows * of_row;
#pragma unroll
    for (int line = 0; line < lines; line += kThreads) {
      const int row = tile.token + (thread + line) / of_row;
      const int column = tile.matrix_row + (thread + line) % of_row * 64;
      if (row < rows_ && column < Config::kResultColumns)
        result.prefetch(static_cast<long long>(row) * Config::kResultColumns + column);
    }
  }
  // A thread has the sums of its rows, a lane of the order of a reduce_sum down 64 rows
  // (ir/reduction_order.h); lanes combine as a balanced tree over neighbours. A warpgroup has 64
  // rows, and a warp uses the memory of its rows of the tile, which it has read.
  template <typename Result>
  SINTER_DEVICE void store_sums(int thread, Chunk& sums, unsigned char* tile, const WorkTile& at,
                                const Result& result) const {
    static_assert(kChunks == 16 && kOwnRows == 8, "a warp has the rows of two lanes");
    constexpr int of_warp = 16 * tile_panel_row(Config::kColumns);  // bytes of its rows
    const int lane = thread % 32, column = thread % kWarpgroupThreads;
    const int group = thread / kWarpgroupThreads, block = at.token / 64 + group;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      sums[e] = math::add(sums[e], __shfl_xor_sync(0xffffffffu, sums[e], 16));
    if (lane < kChunks) {
      float* const own = reinterpret_cast<float*>(tile + thread / 32 * of_warp) + 8 * lane;
#pragma unroll
      for (int e = 0; e < 8; ++e) own[e] = sums[e];
    }
    bar_sync(1 + group, kWarpgroupThreads);
    const auto sum_of = [&](int warp) {
      return reinterpret_cast<const float*>(tile + (4 * group + warp) * of_warp)[column];
    };
    if (block < rows_ / 64 && at.matrix_row + column < Config::kResultColumns)
      result.sums_of_blocks()[static_cast<long long>(block) * Config::kResultColumns +
                              at.matrix_row + column] =
          math::add(math::add(sum_of(0), sum_of(1)), math::add(sum_of(2), sum_of(3)));
  }

  PipelineState<kTiles> stage_;
  unsigned char* shared_;
  Tiles tiles_;
  long long rows_;
};

}  // namespace sinter
#endif
