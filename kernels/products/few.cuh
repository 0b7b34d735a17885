// tiled_linear for few tokens; kernels/products/order.h states its order of operations.
//
// It takes about as long as reading the matrix. The rows of the matrix are the rows of wgmma's
// product and the tokens its columns, so that a product of few tokens wastes little: a warpgroup's
// sums are the transposed result. Two threads, each of a warp of its own, copy tiles of the matrix
// and of the tokens through the stages of one pipeline, by tensor maps; the copies of the matrix do
// not wait for earlier kernels. Each of the other warpgroups multiplies 64 rows of the matrix by
// the tile's tokens.
//
//   matrix:      | stage 0 | stage 1 | stage 2 | ... as stages get free
//   tokens:      | wait for earlier kernels | stage 0 | stage 1 | ...
//   warpgroups:  | wait                               | multiply stage 0 | 1 | ... | store
//
// Config, the constants of a kernel:
//   Element          of operands: f16 or bf16
//   ResultElement    the same, or float
//   kLength          elements of a row of both operands (K)
//   kResultColumns   columns of the result: rows of the matrix
//   kSharedBytes     of the stages
//   kBias            the product has a bias
//   kSections        the result is called with a token, the first of 8 rows of the matrix, and
//                    their PortRows; else it is a port by chunk (kernels/tile/ports.cuh)
//   kPairs           this epilogue needs pairs of rows so far apart; 0: none
// And Form, the constants for some number of tokens:
//   kRows            of the matrix in a tile: 32, or a multiple of 64
//   kColumns         tokens in a tile: a multiple of 16
//   kDepth           elements of K in a stage: a multiple of 64; 64 unless K is a multiple
#pragma once

#include "kernels/isa/tensor_map.cuh"
#include "kernels/products/layout.h"
#include "kernels/products/transposed_result.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/product.cuh"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/scheduler.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

template <typename Config, typename Form>
class FewTokens {
  using T = typename Config::Element;
  static constexpr int kRows = Form::kRows, kColumns = Form::kColumns, kDepth = Form::kDepth;
  static constexpr int kMatrixBytes = tile_bytes(kRows, kDepth);
  static constexpr int kTokenBytes = tile_bytes(kColumns, kDepth);
  static constexpr int kStageBytes = kMatrixBytes + kTokenBytes;
  static constexpr int kStages = few_tokens_stages(Config::kSharedBytes, kStageBytes);
  static constexpr int kSteps = (Config::kLength + kDepth - 1) / kDepth;
  static constexpr int kRowTiles = (Config::kResultColumns + kRows - 1) / kRows;
  using Stored = TransposedResult<Config, kRows, kColumns>;
  static constexpr int kBox = Stored::kBox;

 public:
  // The warpgroups that multiply. With 32 rows two of the warps have sums of whatever follows the
  // tile.
  static constexpr int kWarpgroups = (kRows + 63) / 64;
  using Stages = Pipeline<kStages>;

  // `shared`: the stages' tiles, at a multiple of 1024 bytes.
  SINTER_DEVICE FewTokens(Stages& stages, unsigned char* shared, int tokens)
      : stage_(stages),
        read_(stages),
        shared_(shared),
        tokens_(tokens),
        token_tiles_((tokens + kColumns - 1) / kColumns),
        tiles_(kRowTiles * token_tiles_) {}

  static SINTER_DEVICE void init(Stages& stages) { stages.init(2, 4 * kWarpgroups); }

  // One thread copies the matrix's tiles, another one the tokens'. A box of the matrix has kBox
  // rows, one of the tokens kColumns.
  SINTER_DEVICE void produce_matrix(const TensorMap& w) {
    for_each_stage([&](const Tile& tile, int step) {
      stage_.producer_expect(kMatrixBytes);
#pragma unroll
      for (int row = 0; row < kRows; row += kBox)
        copy_box(matrix_tile() + row * kFewTokensPanelRow, w, step, tile.row + row);
    });
  }
  SINTER_DEVICE void produce_tokens(const TensorMap& x) {
    for_each_stage([&](const Tile& tile, int step) {
      stage_.producer_expect(kTokenBytes);
      const Corner corner = corner_of(step, tile.token);
      cp_async_bulk_tensor_3d(cvta_to_shared(token_tile()), x, corner.element, corner.row,
                              corner.panel, stage_.full());
    });
  }

  // Warpgroup `group` of the multiplying ones.
  template <typename Result>
  SINTER_DEVICE void multiply(int group, const T* bias, const Result& result) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round) {
      float sums[kColumns / 2];
      multiply_tile(sums, group);
      const Tile tile = tile_of(round);
      Stored::store(sums, tile.row + 64 * group, tile.token, tokens_, bias, result);
    }
  }

 private:
  // The first row of the matrix and the first token of a tile. Neighbouring blocks read the same
  // rows.
  struct Tile {
    int row, token;
  };
  SINTER_DEVICE Tile tile_of(int round) const {
    const int tile = tiles_.tile(round);
    return {tile / token_tiles_ * kRows, tile % token_tiles_ * kColumns};
  }
  // Where a box begins, by the dimensions of its tensor map (few_tokens_panels in layout.h).
  struct Corner {
    int element, row, panel;
  };
  static SINTER_DEVICE Corner corner_of(int step, int row) {
    if constexpr (few_tokens_panels(Config::kLength))
      return {0, row, step * (kDepth / 64)};
    else
      return {step * kDepth, row, 0};
  }
  SINTER_DEVICE void copy_box(unsigned char* to, const TensorMap& w, int step, int position) const {
    if constexpr (Stored::kPaired) {
      const int pair = position / 2;
#pragma unroll
      for (int panel = 0; panel < kDepth / 64; ++panel)
        cp_async_bulk_tensor_5d_evict_first(
            cvta_to_shared(to + panel * kBox * kFewTokensPanelRow), w, step * kDepth + panel * 64,
            0, 0, pair % Config::kPairs / kFewTokensChunk, pair / Config::kPairs, stage_.full());
    } else {
      const Corner corner = corner_of(step, position);
      cp_async_bulk_tensor_3d_evict_first(cvta_to_shared(to), w, corner.element, corner.row,
                                          corner.panel, stage_.full());
    }
  }
  SINTER_DEVICE unsigned char* matrix_tile() const {
    return shared_ + stage_.stage() * kStageBytes;
  }
  SINTER_DEVICE unsigned char* token_tile() const { return matrix_tile() + kMatrixBytes; }

  // Calls fill(tile, step) for each stage, when it may be overwritten.
  template <typename Fill>
  SINTER_DEVICE void for_each_stage(Fill fill) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round) {
      const Tile tile = tile_of(round);
#pragma unroll 1
      for (int step = 0; step < kSteps; ++step) {
        stage_.producer_acquire();
        fill(tile, step);
        stage_.advance();
      }
    }
  }

  // The sums of 64 rows. A stage is given back when the products of the next one are issued.
  SINTER_DEVICE void multiply_tile(float (&sums)[kColumns / 2], int group) {
#pragma unroll 1
    for (int step = 0; step < kSteps; ++step) {
      stage_.consumer_wait();
      multiply_tiles<T, kRows, kColumns, kDepth>(sums, matrix_tile(), 64 * group, token_tile(),
                                                 step > 0);
      wgmma_commit_group();
      stage_.advance();
      wgmma_wait_group<1>(sums);
      if (step > 0) read_.consumer_release();
    }
    wgmma_wait_group<0>(sums);
    read_.consumer_release();
  }

  PipelineState<kStages> stage_;  // that is filled, or multiplied, next
  PipelineState<kStages> read_;   // that is given back next
  unsigned char* shared_;
  int tokens_, token_tiles_;
  RoundRobinTiles tiles_;
};

// result = x wᵀ + bias, of `tokens` rows. wait() waits for earlier kernels; `early`: the matrix may
// be read before. `shared`: kSharedBytes for tiles, then the barriers. The block has two warps more
// than warpgroups of any Form.
template <typename Config, typename Form, bool early, typename Wait, typename Result>
SINTER_DEVICE void multiply_few_tokens(const TensorMap& x, const TensorMap& w,
                                       const typename Config::Element* bias, int tokens,
                                       const Result& result, unsigned char* shared, Wait wait) {
  using Product = FewTokens<Config, Form>;
  auto& stages = *reinterpret_cast<typename Product::Stages*>(shared + Config::kSharedBytes);
  if (threadIdx.x == 0) {
    Product::init(stages);
    fence_mbarrier_init();
  }
  __syncthreads();
  Product product(stages, shared, tokens);
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
