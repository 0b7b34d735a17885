// tiled_linear of many tokens; kernels/products/order.h states its order of operations.
//
// One thread of a block copies tiles of both operands through the stages of a pipeline, by tensor
// maps, which write zeros where a tile reaches beyond its operand. The other warpgroups share a
// tile of the result, 64 rows each, or two of them take tiles in turns, so that one multiplies
// while the other computes its epilogue. A long epilogue has warpgroups of its own
// (kEpilogueGroups), to which those that multiply in turns hand rounded tiles:
//
//   warpgroup 0: | multiply tile 0 | round |         | multiply tile 2 | round |
//             1:                   | multiply tile 1 | round |         | multiply tile 3
//          2, 3:                           | epilogue of 0   | epilogue of 1   | epilogue of 2
//
// The blocks of a cluster compute neighbouring tiles of the same tokens: each copies its part of
// them into the shared memory of all, and a stage is free when all of them have read it.
//
// Config: config.cuh.
#pragma once

#include "kernels/products/layout.h"
#include "kernels/tile/epilogue/chunks.cuh"
#include "kernels/tile/epilogue/rounded.cuh"
#include "kernels/tile/loaders/operand_tiles.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/sums/stages.cuh"
#include "kernels/tile/sums/wgmma.cuh"
#include "kernels/tile/tiles/grouped.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

template <typename Config>
class ManyTokens {
  using T = typename Config::Element;
  static constexpr int kCluster = Config::kCluster;
  static constexpr int kTurns = Config::kInTurns ? 2 : 1;
  // The products of 64 rows that a warpgroup computes of a tile, and the warps that read a stage.
  static constexpr int kSlabs = Config::kInTurns ? Config::kRows / 64 : 1;
  static constexpr int kReadingWarps = Config::kRows / 16 / kSlabs;
  static constexpr bool kHandsOver = Config::kEpilogueGroups > 0;
  static_assert(Config::kGroups == 0 || (!Config::kInTurns && !Config::kBias), "not with runs");
  // The L2 cache keeps the operands of 2,048 tokens.
  using Tiles = typename ProductTiles<Config::kRows, Config::kColumns, Config::kResultColumns,
                                      Config::kGroups, 2048 / Config::kRows, kCluster,
                                      Config::kSummedRows, Config::kDepth>::Type;
  using Operands = OperandTiles<Config, Tiles>;
  static constexpr int kSteps = Operands::kSteps;
  using Rounded = RoundedTiles<Config, Tiles>;

 public:
  struct Barriers {  // of a block
    Pipeline<Config::kStages> stages;
    Turns<kTurns> turns;
    typename Rounded::Barriers rounded;
  };

  // `shared`: the stages' tiles, at a multiple of 1024 bytes, then the tiles of rounded results.
  // `rows`: of x. `ends`: of the runs.
  SINTER_DEVICE ManyTokens(Barriers& barriers, unsigned char* shared, long long rows,
                           const int* ends)
      : barriers_(barriers),
        stage_(barriers.stages),
        shared_(shared),
        rows_(rows),
        tiles_(ends, rows) {}

  static SINTER_DEVICE void init(Barriers& barriers) {
    barriers.stages.init(1, kReadingWarps * kCluster);
    barriers.turns.init(kReadingWarps);
    if constexpr (kHandsOver) Rounded::init(barriers.rounded);
  }

  // One thread copies the tiles of both operands.
  SINTER_DEVICE void produce(const TensorMap& x, const TensorMap& w) {
    fill_stages<kSteps>(stage_, tiles_, [&](const WorkTile& tile, int step) {
      stage_.producer_expect(Operands::kBytes);
      operands().fill(x, w, tile, step, tiles_.rank(), stage_.full());
    });
  }

  // Warpgroup `group` of the multiplying ones.
  template <typename Result>
  SINTER_DEVICE void multiply(int group, const T* bias, const Result& result) {
    const int turn = Config::kInTurns ? group : 0, first_row = Config::kInTurns ? 0 : 64 * group;
    stage_.advance(turn * kSteps);
    Rounded rounded = rounded_tiles();
    if constexpr (kHandsOver) rounded.begin_producing(turn);
#pragma unroll 1
    for (int round = turn; tiles_.has(round); round += kTurns) {
      Sums sums[kSlabs];
      if constexpr (Config::kInTurns)
        sum_in_turn<kSteps, kCluster>(sums, barriers_.turns, turn, round / kTurns, stage_,
                                      [&](int step) { multiply_stage(0, sums, step); });
      else if (const int steps = Tiles::template steps_of<kSteps>(tiles_.tile(round)); steps > 0)
        sum_stages<kCluster>(sums, stage_, steps, [&](int step) {
          operands().clear_neighbours(tiles_.tile(round), step);
          multiply_stage(first_row, sums, step);
        });
      else
        clear_sums(sums[0]);
      stage_.advance((kTurns - 1) * kSteps);  // the other warpgroup's tile
      const WorkTile tile = tiles_.tile(round);
      const int row = tile.token + first_row + first_row_in_warpgroup();
      if constexpr (kHandsOver) {
        if constexpr (Config::kBias) Chunks::add_bias_to_tile(sums, bias, tile.matrix_row);
        rounded.produce(sums);
      } else {
        Chunks(Tiles::end(tile, rows_)).store_slabs(sums, row, tile.matrix_row, bias, result);
      }
    }
  }

  // Thread `thread` of the epilogue's warpgroups.
  template <typename Result>
  SINTER_DEVICE void finish_tiles(int thread, const Result& result) {
    rounded_tiles().consume(thread, result);
  }

 private:
  using Chunks = ChunkedResult<Config>;
  using Sums = typename Chunks::Sums;

  // Issues the products of the stage's tiles, for the rows from `first_row` on.
  SINTER_DEVICE void multiply_stage(int first_row, Sums (&sums)[kSlabs], int step) const {
    const Operands tiles = operands();
    multiply_slabs<T, Config::kRows, Config::kColumns, Config::kDepth, typename Config::Steps,
                   (Config::kSummedRows > 0), Config::kTransposed>(sums, tiles.rows(), first_row,
                                                                   tiles.columns(), step > 0);
  }
  SINTER_DEVICE Operands operands() const {
    return Operands(shared_ + stage_.stage() * Operands::kBytes);
  }

  SINTER_DEVICE Rounded rounded_tiles() const {
    return {barriers_.rounded, shared_ + Config::kStages * Operands::kBytes, tiles_, rows_};
  }

  Barriers& barriers_;
  PipelineState<Config::kStages> stage_;
  unsigned char* shared_;
  long long rows_;
  Tiles tiles_;
};

// result = x wᵀ + bias. `result` takes elements by set(at, x) and set_chunk(at, values). `ends`: of
// runs of x's rows, which have a matrix each (kGroups); else null.
template <typename Config, typename Result>
SINTER_DEVICE void multiply_matrices(const TensorMap& x, const TensorMap& w,
                                     const typename Config::Element* bias, long long rows,
                                     const Result& result, unsigned char* shared,
                                     const int* ends = nullptr) {
  __shared__ typename ManyTokens<Config>::Barriers barriers;
  if (threadIdx.x == 0) {
    ManyTokens<Config>::init(barriers);
    fence_mbarrier_init();
  }
  meet_cluster<Config::kCluster>();
  ManyTokens<Config> product(barriers, shared, rows, ends);
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
