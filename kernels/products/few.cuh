// tiled_linear for few tokens; kernels/products/order.h states its order of operations.
//
// It takes about as long as reading the matrix. The rows of the matrix are the rows of wgmma's
// product and the tokens its columns, so that a product of few tokens wastes little: a warpgroup's
// sums are the transposed result. Tokens of one tile leave each block an equal share of the
// matrix's rows: the block with the most rows decides how long the kernel takes. Two threads, each
// of a warp of its own, copy tiles of the matrix and of the tokens through the stages of one
// pipeline, by tensor maps; the copies of the matrix do not wait for earlier kernels. Each of the
// other warpgroups multiplies 64 rows of the matrix by the tile's tokens.
//
//   matrix:      | stage 0 | stage 1 | stage 2 | ... as stages get free
//   tokens:      | wait for earlier kernels | stage 0 | stage 1 | ...
//   warpgroups:  | wait                               | multiply stage 0 | 1 | ... | store
//
// Config and Form: config.cuh.
#pragma once

#include "kernels/products/layout.h"
#include "kernels/tile/epilogue/transposed.cuh"
#include "kernels/tile/loaders/boxes.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/sums/stages.cuh"
#include "kernels/tile/sums/wgmma.cuh"
#include "kernels/tile/tiles/grouped.cuh"
#include "kernels/tile/tiles/row_shares.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// Without shares, neighbouring blocks read the same rows of the matrix.
template <typename Config, typename Form, bool shares = Form::kShares>
struct TilesOfFew {
  using Type = typename ProductTiles<Form::kColumns, Form::kRows, Config::kResultColumns,
                                     Config::kGroups, 0>::Type;
};
template <typename Config, typename Form>
struct TilesOfFew<Config, Form, true> {
  using Type = RowShares<kShareRows, Form::kRows, Config::kResultColumns>;
};

template <typename Config, typename Form>
class FewTokens {
  using T = typename Config::Element;
  using Steps = typename Config::Steps;
  static constexpr int kRows = Form::kRows, kColumns = Form::kColumns, kDepth = Form::kDepth;
  static constexpr int kMatrixBytes = tile_bytes(kRows, kDepth);
  static constexpr int kTokenBytes = tile_bytes(kColumns, kDepth);
  static constexpr int kStageBytes = kMatrixBytes + kTokenBytes;
  static constexpr int kStages = few_stages(Config::kSharedBytes, kStageBytes);
  static constexpr int kSteps = (Config::kLength + kDepth - 1) / kDepth;
  using Tiles = typename TilesOfFew<Config, Form>::Type;
  using Stored = TransposedResult<Config, kRows, kColumns>;
  // Rows and elements of a box of the matrix.
  static constexpr int kBox = Form::kShares ? kShareRows : Stored::kBox;
  static constexpr int kBoxDepth = Form::kShares ? kPanel : kDepth;

 public:
  // The warpgroups that multiply. Warps without rows of a tile have sums of whatever follows them.
  static constexpr int kWarpgroups = (kRows + 63) / 64;
  using Stages = Pipeline<kStages>;

  // `shared`: the stages' tiles, at a multiple of 1024 bytes. `ends`: of the runs.
  SINTER_DEVICE FewTokens(Stages& stages, unsigned char* shared, int tokens, const int* ends)
      : stage_(stages), read_(stages), shared_(shared), tokens_(tokens), tiles_(ends, tokens) {}

  static SINTER_DEVICE void init(Stages& stages) { stages.init(2, 4 * kWarpgroups); }

  // One thread copies the matrix's tiles, another one the tokens'. A box of the matrix has kBox
  // rows, one of the tokens kColumns.
  SINTER_DEVICE void produce_matrix(const TensorMap& w) {
    fill_stages<kSteps>(stage_, tiles_, [&](const WorkTile& tile, int step) {
      const int rows = rows_of(tile);
      stage_.producer_expect(tile_bytes(rows, kDepth));
#pragma unroll
      for (int row = 0; row < kRows; row += kBox) {
        if (row >= rows) break;
#pragma unroll
        for (int k = 0; k < kDepth; k += kBoxDepth)
          copy_box(matrix_tile() + k / kPanel * tile_panel(kRows, kDepth) + row * kPanelRow, w,
                   Steps::at(step, kSteps) * kDepth + k, Tiles::first_matrix_row(tile) + row);
      }
    });
  }
  SINTER_DEVICE void produce_tokens(const TensorMap& x) {
    fill_stages<kSteps>(stage_, tiles_, [&](const WorkTile& tile, int step) {
      stage_.producer_expect(kTokenBytes);
      copy_panels<Config::kLength>(token_tile(), x, Steps::at(step, kSteps) * kDepth, tile.token,
                                   stage_.full());
    });
  }

  // Warpgroup `group` of the multiplying ones.
  template <typename Result>
  SINTER_DEVICE void multiply(int group, const T* bias, const Result& result) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round) {
      float sums[1][kColumns / 2];
      if (Tiles::template steps_of<kSteps>(tiles_.tile(round)) > 0)
        multiply_tile(sums, group);
      else
        clear_sums(sums[0]);
      const WorkTile tile = tiles_.tile(round);
      Stored::store(sums[0], tile.matrix_row + 64 * group, rows_of(tile) - 64 * group, tile.token,
                    Tiles::end(tile, tokens_), bias, result);
    }
  }

 private:
  // The rows of the matrix that a tile has.
  SINTER_DEVICE int rows_of(const WorkTile& tile) const {
    if constexpr (Form::kShares) return tiles_.rows_of(tile);
    return kRows;
  }
  SINTER_DEVICE void copy_box(unsigned char* to, const TensorMap& w, int k, int position) const {
    if constexpr (Stored::kPaired)
      copy_pairs_once<Config::kPairs, kBox, kBoxDepth>(to, w, k, position, stage_.full());
    else
      copy_panels_once<Config::kLength>(to, w, k, position, stage_.full());
  }
  SINTER_DEVICE unsigned char* matrix_tile() const {
    return shared_ + stage_.stage() * kStageBytes;
  }
  SINTER_DEVICE unsigned char* token_tile() const { return matrix_tile() + kMatrixBytes; }

  // The sums of 64 rows.
  SINTER_DEVICE void multiply_tile(float (&sums)[1][kColumns / 2], int group) {
    sum_stages_ahead<kSteps, 1>(sums, stage_, read_, [&](int step) {
      multiply_slabs<T, kRows, kColumns, kDepth, Steps>(sums, matrix_tile(), 64 * group,
                                                        token_tile(), step > 0);
    });
    wait_for_all_but<0>(sums);
    read_.consumer_release();
  }

  PipelineState<kStages> stage_;  // that is filled, or multiplied, next
  PipelineState<kStages> read_;   // that is given back next
  unsigned char* shared_;
  int tokens_;
  Tiles tiles_;
};

// result = x wᵀ + bias, of `tokens` rows. wait() waits for earlier kernels; `early`: the matrix may
// be read before. `shared`: kSharedBytes for tiles, then the barriers. The block has two warps more
// than warpgroups of any Form. `ends`: of runs of x's rows, which have a matrix each (kGroups);
// else null.
template <typename Config, typename Form, bool early, typename Wait, typename Result>
SINTER_DEVICE void multiply_few_tokens(const TensorMap& x, const TensorMap& w,
                                       const typename Config::Element* bias, int tokens,
                                       const Result& result, unsigned char* shared, Wait wait,
                                       const int* ends = nullptr) {
  using Product = FewTokens<Config, Form>;
  auto& stages = *reinterpret_cast<typename Product::Stages*>(shared + Config::kSharedBytes);
  if (threadIdx.x == 0) {
    Product::init(stages);
    fence_mbarrier_init();
  }
  __syncthreads();
  Product product(stages, shared, tokens, ends);
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
  const bool leads = threadIdx.x % 32 == 0;
  const bool copies_matrix = warp == warps - 2, copies_tokens = warp == warps - 1;
  if (!early || !copies_matrix) wait();
  if (copies_matrix) {
    if (leads) product.produce_matrix(w);
    __syncwarp();
    if (early) wait();
  } else if (copies_tokens) {
    if (leads) product.produce_tokens(x);
  } else if (warp < 4 * Product::kWarpgroups) {
    product.multiply(warp / 4, bias, result);
  }
}

}  // namespace sinter
#endif
