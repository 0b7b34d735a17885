// tiled_linear; kernels/products/order.h states its order of operations.
//
// A block computes tiles of the result, one after the other. One thread of the first warpgroup
// copies tiles of both operands through the stages of a pipeline, by tensor maps, which write zeros
// where a tile reaches beyond its operand. The other warpgroups share a tile, 64 rows each, or two
// of them take whole tiles in turns: then one multiplies while the other computes its epilogue.
//
//   in turns, warpgroup 0: | multiply tile 0 | epilogue        | multiply tile 2 | epilogue
//             warpgroup 1:                   | multiply tile 1 | epilogue        | multiply tile 3
//
// A long epilogue has warpgroups of its own (kEpilogueGroups). Those that multiply in turns round
// their sums and leave them in shared memory, a tile each:
//
//   warpgroup 0: | multiply tile 0 | round |         | multiply tile 2 | round |
//             1:                   | multiply tile 1 | round |         | multiply tile 3
//          2, 3:                           | epilogue of 0   | epilogue of 1   | epilogue of 2
//
// The blocks of a cluster compute tiles that are neighbours in a row: each copies its part of the
// rows' tile into the shared memory of all of them, so that the L2 cache is read less. A stage is
// free when the warpgroups of all blocks have read it.
//
// Config, the constants of a kernel:
//   Element          of operands: f16 or bf16
//   ResultElement    the same, or float
//   kLength          elements of a row of both operands (K)
//   kResultColumns   columns of the result: rows of the matrix
//   kRows, kColumns  of a tile of the result; rows: a multiple of 64
//   kInTurns         two warpgroups take tiles in turns; else kRows / 64 of them share a tile
//   kEpilogueGroups  warpgroups that compute the epilogue, where two others multiply in turns; 0:
//                    those that multiply compute it
//   kLoops           the epilogue is a loop whose text stands once
//   kDepth           elements of K in a stage
//   kStages          of the pipeline
//   kCluster         blocks of a cluster
//   kTransposed      the matrix's columns, not its rows, are contiguous in memory
//   kBias            the product has a bias
//   kSums            the result's text adds the rows of a value, whose sums of 64 rows are stored
//   kSections        the result is called with a token, the first of 8 rows of the matrix, and
//                    their PortRows; else it is a port by chunk whose inputs are loaded ahead
//                    (codegen/emission/element_ports.h)
//   kPairs           this epilogue needs pairs of rows of the matrix so far apart; 0: none
#pragma once

#include "kernels/common/ahead_loads.cuh"
#include "kernels/isa/cluster.cuh"
#include "kernels/isa/tensor_map.cuh"
#include "kernels/products/layout.h"
#include "kernels/products/port_rows.cuh"
#include "kernels/products/result_tiles.cuh"
#include "kernels/products/rounded_tiles.cuh"
#include "kernels/tile/fragment.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/ports.cuh"
#include "kernels/tile/product.cuh"
#include "kernels/tile/roles.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

template <typename Config>
class TiledLinear {
  using T = typename Config::Element;
  static constexpr int kRowBytes = tile_bytes(Config::kRows, Config::kDepth);
  static constexpr int kColumnBytes = tile_bytes(Config::kColumns, Config::kDepth);
  static constexpr int kSteps = (Config::kLength + Config::kDepth - 1) / Config::kDepth;
  static constexpr int kCluster = Config::kCluster;
  static constexpr int kTurns = Config::kInTurns ? 2 : 1;
  // The products of 64 rows that a warpgroup computes of a tile, and the warps that read a stage.
  static constexpr int kSlabs = Config::kInTurns ? Config::kRows / 64 : 1;
  static constexpr int kReadingWarps = Config::kRows / 16 / kSlabs;
  static constexpr bool kPaired = Config::kPairs > 0;
  static constexpr bool kHandsOver = Config::kEpilogueGroups > 0;
  using Pairs = PairedRows<kPaired ? Config::kPairs : Config::kColumns, Config::kColumns>;

 public:
  // The barriers of a block. A phase of multiplied[i] ends when warpgroup i has issued the products
  // of a tile, where warpgroups take turns.
  struct Barriers {
    Pipeline<Config::kStages> stages;
    Barrier multiplied[kTurns];
    typename RoundedTiles<Config>::Barriers rounded;
  };

  // `shared`: the stages' tiles, at a multiple of 1024 bytes, then the tiles of rounded results.
  // `rows`: of the result.
  SINTER_DEVICE TiledLinear(Barriers& barriers, unsigned char* shared, long long rows)
      : barriers_(barriers), stage_(barriers.stages), shared_(shared), rows_(rows), tiles_(rows) {}

  static SINTER_DEVICE void init(Barriers& barriers) {
    barriers.stages.init(1, kReadingWarps * kCluster);
    for (Barrier& multiplied : barriers.multiplied)
      mbarrier_init(cvta_to_shared(&multiplied), kReadingWarps);
    if constexpr (kHandsOver) RoundedTiles<Config>::init(barriers.rounded);
  }

  // One thread copies the tiles of both operands. A box of x has the rows of the block's part.
  SINTER_DEVICE void produce(const TensorMap& x, const TensorMap& w) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round) {
      const auto tile = tiles_.tile(round);
#pragma unroll 1
      for (int step = 0; step < kSteps; ++step) {
        stage_.producer_acquire();
        stage_.producer_expect(kRowBytes + kColumnBytes);
        const int k = step * Config::kDepth;
        copy_rows(x, k, tile.row);
        copy_columns(w, k, tile.column);
        stage_.advance();
      }
    }
  }

  // Warpgroup `group` of the multiplying ones.
  template <typename Result>
  SINTER_DEVICE void multiply(int group, const T* bias, const Result& result) {
    const int turn = Config::kInTurns ? group : 0, first_row = Config::kInTurns ? 0 : 64 * group;
    stage_.advance(turn * kSteps);
    RoundedTiles<Config> rounded = rounded_tiles();
    if constexpr (kHandsOver) rounded.begin_producing(turn);
#pragma unroll 1
    for (int round = turn; tiles_.has(round); round += kTurns) {
      Sums sums[kSlabs];
      if constexpr (Config::kInTurns)
        multiply_in_turn(turn, round / kTurns, sums);
      else
        multiply_beside_others(first_row, sums);
      stage_.advance((kTurns - 1) * kSteps);  // the other warpgroup's tile
      const auto tile = tiles_.tile(round);
      const int row = tile.row + first_row + first_row_in_warpgroup();
      if constexpr (kHandsOver) {
        if constexpr (Config::kBias) add_bias_to_tile(sums, bias, tile.column);
        rounded.produce(sums);
      } else if constexpr (Config::kLoops) {
#pragma unroll 1
        for (int slab = 0; slab < kSlabs; ++slab) {
          finish(sums[0], row + 64 * slab, tile.column, bias, result);
#pragma unroll
          for (int next = 1; next < kSlabs; ++next) move_sums(sums[next - 1], sums[next]);
        }
      } else {
#pragma unroll
        for (int slab = 0; slab < kSlabs; ++slab)
          finish(sums[slab], row + 64 * slab, tile.column, bias, result);
      }
    }
  }

  // Thread `thread` of the epilogue's warpgroups.
  template <typename Result>
  SINTER_DEVICE void finish_tiles(int thread, const Result& result) {
    rounded_tiles().consume(thread, result);
  }

 private:
  using Sums = float[Config::kColumns / 2];
  using Rounded = typename Config::ResultElement;
  static constexpr int kAheadTurns = 4;  // of an epilogue, whose inputs are in registers

  static SINTER_DEVICE void move_sums(Sums& to, const Sums& from) {
#pragma unroll
    for (int i = 0; i < Config::kColumns / 2; ++i) to[i] = from[i];
  }

  // A tile of which the warpgroup has 64 rows. It waits for each product: meanwhile the others'
  // are computed.
  SINTER_DEVICE void multiply_beside_others(int first_row, Sums (&sums)[kSlabs]) {
#pragma unroll 1
    for (int step = 0; step < kSteps; ++step) {
      stage_.consumer_wait();
      multiply_stage(first_row, sums, step > 0);
      wait_for_all_but<0>(sums);
      stage_.template consumer_release_cluster<kCluster>();
    }
  }
  // A whole tile, the warpgroup's `count`-th. It begins when the other warpgroup has waited for all
  // stages of the tile before: a wait for a stage tells apart its last two phases only. The
  // products of a step are issued before the previous step's products have ended, so that a stage
  // is released a step later.
  SINTER_DEVICE void multiply_in_turn(int turn, int count, Sums (&sums)[kSlabs]) {
    const unsigned phase = static_cast<unsigned>(count % 2);
    mbarrier_try_wait_parity(cvta_to_shared(&barriers_.multiplied[1 - turn]),
                             turn == 0 ? phase ^ 1 : phase);
    PipelineState<Config::kStages> in_use = stage_;
#pragma unroll 1
    for (int step = 0; step < kSteps; ++step) {
      stage_.consumer_wait();
      multiply_stage(0, sums, step > 0);
      wait_for_all_but<1>(sums);
      if (step > 0) in_use.template consumer_release_cluster<kCluster>();
      stage_.advance();
    }
    if (threadIdx.x % 32 == 0) mbarrier_arrive(cvta_to_shared(&barriers_.multiplied[turn]));
    wait_for_all_but<0>(sums);
    in_use.template consumer_release_cluster<kCluster>();
  }
  // Issues the products of the stage's tiles, for the rows from `first_row` on.
  SINTER_DEVICE void multiply_stage(int first_row, Sums (&sums)[kSlabs], bool adds) const {
    multiply_slabs<T, Config::kRows, Config::kColumns, Config::kDepth, Config::kTransposed>(
        sums, row_tile(), first_row, column_tile(), adds);
    wgmma_commit_group();
  }
  template <int groups>
  static SINTER_DEVICE void wait_for_all_but(Sums (&sums)[kSlabs]) {
    wgmma_wait_group<groups>(sums[0]);
#pragma unroll
    for (int slab = 1; slab < kSlabs; ++slab) warpgroup_fence_operand(sums[slab]);
  }

  SINTER_DEVICE RoundedTiles<Config> rounded_tiles() const {
    unsigned char* const shared = shared_ + Config::kStages * (kRowBytes + kColumnBytes);
    return {barriers_.rounded, shared, tiles_, rows_};
  }
  SINTER_DEVICE unsigned char* row_tile() const {
    return shared_ + stage_.stage() * (kRowBytes + kColumnBytes);
  }
  SINTER_DEVICE unsigned char* column_tile() const { return row_tile() + kRowBytes; }
  SINTER_DEVICE void copy_rows(const TensorMap& x, int k, int row) const {
    if constexpr (kCluster == 1) {
      cp_async_bulk_tensor_2d(cvta_to_shared(row_tile()), x, k, row, stage_.full());
    } else {
      const int first = tiles_.rank() * (Config::kRows / kCluster);
      cp_async_bulk_tensor_2d_multicast(
          cvta_to_shared(row_tile() + first * tile_panel_row(Config::kDepth)), x, k, row + first,
          stage_.full(), (1 << kCluster) - 1);
    }
  }

  SINTER_DEVICE void copy_columns(const TensorMap& w, int k, int column) const {
    const SharedAddress to = cvta_to_shared(column_tile());
    if constexpr (Config::kTransposed) {
      constexpr int of_panel = kTransposedPanel;
#pragma unroll
      for (int panel = 0; panel < Config::kColumns / of_panel; ++panel)
        cp_async_bulk_tensor_2d(
            cvta_to_shared(column_tile() + panel * tile_panel(Config::kDepth, of_panel)), w,
            column + panel * of_panel, k, stage_.full());
    } else if constexpr (kPaired) {
      const int pair = column / 2;
      cp_async_bulk_tensor_5d(to, w, k, 0, 0, pair % Config::kPairs / kFewTokensChunk,
                              pair / Config::kPairs, stage_.full());
    } else {
      cp_async_bulk_tensor_2d(to, w, k, column, stage_.full());
    }
  }

  // The first row of the matrix that a chunk of 8 columns of the tile at `column` has.
  static SINTER_DEVICE int matrix_row(int column, int chunk) {
    if constexpr (kPaired)
      return Pairs::matrix_row(column, chunk / 2) + chunk % 2 * Config::kPairs;
    else
      return column + 8 * chunk;
  }
  static SINTER_DEVICE void add_bias(Sums& sums, const T* bias, int first) {
    const int own = 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int i = 0; i < Config::kColumns / 2; ++i) {
      const int row = matrix_row(first, i / 4) + own + i % 2;
      if (row < Config::kResultColumns) sums[i] = math::add(sums[i], load(bias + row));
    }
  }
  // The same for all slabs, where rows of the matrix are not paired and whole chunks of 8.
  static SINTER_DEVICE void add_bias_to_tile(Sums (&sums)[kSlabs], const T* bias, int first) {
    const int own = 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int chunk = 0; chunk < Config::kColumns / 8; ++chunk) {
      const int column = first + 8 * chunk;
      if (column >= Config::kResultColumns) return;
      const unsigned word = *reinterpret_cast<const unsigned*>(bias + column + own);
      const float pair[2] = {low_half(bias, word & 0xffffu), low_half(bias, word >> 16)};
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          sums[slab][4 * chunk + i] = math::add(sums[slab][4 * chunk + i], pair[i % 2]);
    }
  }
  // Calls take(turn, half, chunk, values) in each turn of a lane (kernels/tile/fragment.cuh).
  template <int units, typename Take>
  static SINTER_DEVICE void for_each_turn(Sums& sums, Take take) {
    if constexpr (Config::kLoops)
      take_chunks_in_a_loop<Rounded, Config::kColumns / 8, units>(sums, take);
    else
      take_chunks_in_turns<Rounded, Config::kColumns / 8, units>(sums, take);
  }
  // Adds the bias and gives the result a lane's rows, `row` and 8 more. The sums are lost.
  template <typename Result>
  SINTER_DEVICE void finish(Sums& sums, int row, int column, const T* bias,
                            const Result& result) const {
    if constexpr (Config::kBias) add_bias(sums, bias, column);
    if constexpr (kPaired || Config::kSections)
      store_sections(sums, row, column, result);
    else
      store_chunks(sums, row, column, result);
  }
  SINTER_DEVICE bool has_chunk(int row, int column, int half, int chunk) const {
    return chunk < Config::kColumns / 8 && row + 8 * half < rows_ &&
           matrix_row(column, chunk) < Config::kResultColumns;
  }
  template <typename Result>
  SINTER_DEVICE void store_sections(Sums& sums, int row, int column, const Result& result) const {
    constexpr int units = kPaired ? 2 : 1;
    for_each_turn<units>(sums, [&](int, int half, int chunk, const Chunk(&values)[units]) {
      if (!has_chunk(row, column, half, chunk)) return;
      const long long own = row + 8 * half;
      const int first = matrix_row(column, chunk);
      const long long at = own * Config::kResultColumns + first;
      if constexpr (kPaired) {
        constexpr int apart = Config::kPairs;
        result(own, first, PortRows<true>(at, values[0], values[1]));
        result(own, first + apart, PortRows<true>(at + apart, values[1], values[0]));
      } else {
        result(own, first, PortRows<false>(at, values[0]));
      }
    });
  }
  // The inputs of kAheadTurns turns are loaded ahead.
  template <typename Result>
  SINTER_DEVICE void store_chunks(Sums& sums, int row, int column, const Result& result) const {
    constexpr int columns = Config::kResultColumns;
    constexpr int row_turns = turns_of_row(Config::kColumns / 8, 1);
    constexpr bool whole = columns % 8 == 0;
    AheadWords words[kAheadTurns];
    Chunk no_sums = {};
    const auto at = [&](int half, int chunk) {
      return static_cast<long long>(row + 8 * half) * columns + matrix_row(column, chunk);
    };
    const auto load_ahead = [&](int turn, AheadWords& to) {
      if (!whole || turn >= 2 * row_turns) return;
      const int half = Config::kLoops ? turn % 2 : turn / row_turns;
      const int of_row = Config::kLoops ? turn / 2 : turn % row_turns;
      const int chunk = 4 * of_row + static_cast<int>(threadIdx.x) % 4;
      if (has_chunk(row, column, half, chunk)) result.issue_loads(at(half, chunk), to);
    };
#pragma unroll
    for (int turn = 0; turn < kAheadTurns; ++turn) load_ahead(turn, words[turn]);
    for_each_turn<1>(sums, [&](int turn, int half, int chunk, const Chunk(&values)[1]) {
      AheadWords& own = words[Config::kLoops ? 0 : turn % kAheadTurns];
      if (has_chunk(row, column, half, chunk)) {
        if constexpr (whole)
          result.set_chunk(at(half, chunk), values[0], TakenLoads(own, no_sums));
        else
          write_port<false>(result, at(half, chunk), columns - matrix_row(column, chunk),
                            values[0]);
      }
      if constexpr (Config::kLoops) {
#pragma unroll
        for (int next = 1; next < kAheadTurns; ++next) words[next - 1] = words[next];
        load_ahead(turn + kAheadTurns, words[kAheadTurns - 1]);
      } else {
        load_ahead(turn + kAheadTurns, own);
      }
    });
  }

  Barriers& barriers_;
  PipelineState<Config::kStages> stage_;
  unsigned char* shared_;
  long long rows_;
  ResultTiles<Config> tiles_;
};

// The barriers of all blocks of the cluster exist, or all blocks are done: a block writes into the
// others' shared memory.
template <int cluster>
SINTER_DEVICE void meet_cluster() {
  if constexpr (cluster == 1) return __syncthreads();
  barrier_cluster_arrive_relaxed();
  barrier_cluster_wait();
}

// result = x wᵀ + bias. `result` takes elements by set(at, x) and set_chunk(at, values).
template <typename Config, typename Result>
SINTER_DEVICE void multiply_matrices(const TensorMap& x, const TensorMap& w,
                                     const typename Config::Element* bias, long long rows,
                                     const Result& result, unsigned char* shared) {
  __shared__ typename TiledLinear<Config>::Barriers barriers;
  if (threadIdx.x == 0) {
    TiledLinear<Config>::init(barriers);
    fence_mbarrier_init();
  }
  meet_cluster<Config::kCluster>();
  TiledLinear<Config> product(barriers, shared, rows);
  const int warpgroup = warpgroup_index();
  constexpr int multiplying = Config::kInTurns ? 2 : Config::kRows / 64;
  constexpr int registers = tiled_linear_registers(multiplying, Config::kEpilogueGroups);
  if (Config::kEpilogueGroups > 0 && warpgroup > multiplying) {
    if constexpr (Config::kEpilogueGroups > 0) {
      setmaxnreg_dec<kTiledLinearEpilogueRegisters>();
      product.finish_tiles(static_cast<int>(threadIdx.x) - (multiplying + 1) * kWarpgroupThreads,
                           result);
    }
  } else if (warpgroup > 0) {
    setmaxnreg_inc<registers>();
    product.multiply(warpgroup - 1, bias, result);
  } else {
    setmaxnreg_dec<kTiledLinearCopyRegisters>();
    if (threadIdx.x == 0) product.produce(x, w);
  }
  if constexpr (Config::kCluster > 1) meet_cluster<Config::kCluster>();
}

}  // namespace sinter
#endif
