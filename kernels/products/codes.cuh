// tiled_codes; kernels/products/order.h states its order of operations.
//
// The rows of the matrix are the rows of wgmma's product and the tokens its columns, as in
// few.cuh, for any number of tokens. The codes of a tile come into shared memory as they are
// packed; a warpgroup turns the codes of its 64 rows into pairs of 16-bit floats, the operand that
// wgmma takes from registers. A thread has two sets of sums: the sums of a group are multiplied by
// the scales of the thread's two rows and added to the sums of the whole rows. Formats with minima
// have one more set: of the tokens' elements.
//
//   codes, scales │ half of a step │ half of a step │ ...       one thread, does not wait
//   tokens        │ 64 columns │ 64 columns │ ...               one thread
//   warpgroups    │ codes to pairs │ wgmma │ at a group's end: fma(scale, s1, sum) │ ...
//
// Two pipelines: a stage of codes has the codes of 16 lanes (ir/packed_codes.h) in all rounds of a
// step, one of tokens 64 columns of them. While a warpgroup makes pairs or adds a group, the others
// multiply.
//
// Config and Form: config.cuh.
#pragma once

#include "kernels/products/layout.h"
#include "kernels/tile/epilogue/transposed.cuh"
#include "kernels/tile/loaders/boxes.cuh"
#include "kernels/tile/loaders/codes.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/sums/codes.cuh"
#include "kernels/tile/sums/stages.cuh"
#include "kernels/tile/tiles/cached.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

template <typename Config, typename Form>
class TiledCodes {
  using T = typename Config::Element;
  using Matrix = typename Config::Matrix;
  using Group = typename Matrix::Group;
  static constexpr int kRows = Form::kRows, kColumns = Form::kColumns;
  using Stored = TransposedResult<Config, kRows, kColumns>;
  using Runs = CodeRuns<Matrix, Config::kLength>;
  using Codes = CodesTile<T, Matrix, kRows, Stored::kBox>;
  static constexpr int kCodeStage = codes_stage_bytes(Matrix::layout(), kRows);
  static constexpr int kTokenStage = tile_bytes(kColumns, kCodesWindow);
  static constexpr CodesStages kStages =
      codes_stages(Config::kSharedBytes, kCodeStage, kTokenStage);
  // The L2 cache keeps the operands of about 2,048 tokens.
  using Tiles =
      CachedTiles<kColumns, kRows, Config::kResultColumns, (2048 + kColumns - 1) / kColumns>;
  using Summed = CodeSums<T, Matrix, kColumns>;

 public:
  static constexpr int kWarpgroups = (kRows + 63) / 64;
  struct Stages {
    Pipeline<kStages.codes> codes;
    Pipeline<kStages.tokens> tokens;
  };

  // `shared`: the stages' tiles, at a multiple of 1024 bytes.
  SINTER_DEVICE TiledCodes(Stages& stages, unsigned char* shared, const int* matrix,
                           long long tokens)
      : codes_(stages.codes),
        window_(stages.tokens),
        read_(stages.tokens),
        shared_(shared),
        matrix_(matrix),
        tokens_(static_cast<int>(tokens)),
        tiles_(nullptr, tokens_) {}

  static SINTER_DEVICE void init(Stages& stages) {
    stages.codes.init(1, 4 * kWarpgroups);
    stages.tokens.init(1, 4 * kWarpgroups);
  }

  // One thread copies the codes and their scales, another one the tokens.
  SINTER_DEVICE void produce_codes(const TensorMap& codes, const TensorMap& scales) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round)
      Runs::for_each_half(CopyCodes{*this, codes, scales, tiles_.tile(round).matrix_row});
  }
  SINTER_DEVICE void produce_tokens(const TensorMap& x) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round)
      Runs::for_each_half(CopyTokens{*this, x, tiles_.tile(round).token});
  }

  // Warpgroup `group` of the multiplying ones.
  template <typename Result>
  SINTER_DEVICE void multiply(int group, const T* bias, const Result& result) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round) {
      float sums[kColumns / 2];
      const WorkTile tile = tiles_.tile(round);
      const int position = tile.matrix_row + 64 * group;
      multiply_tile(sums, group, position);
      Stored::store(sums, position, kRows, tile.token, tokens_, bias, result);
    }
  }

 private:
  struct CopyCodes {
    TiledCodes& product;
    const TensorMap &codes, &scales;
    int first_row;  // of the tile

    template <typename Kind>
    SINTER_DEVICE void operator()(Kind, int step, int half) const {
      product.codes_.producer_acquire();
      product.codes_.producer_expect(Codes::kBytes);
      product.code_tile().template fill<Kind::kStepRounds>(
          codes, scales, step, half,
          [&](unsigned char* to, const TensorMap& map, int byte, int row) {
            if constexpr (Stored::kPaired)
              copy_pairs<Config::kPairs>(to, map, byte / 4, first_row + row, product.codes_.full());
            else
              cp_async_bulk_tensor_2d(cvta_to_shared(to), map, byte / 4, first_row + row,
                                      product.codes_.full());
          });
      product.codes_.advance();
    }
  };
  struct CopyTokens {
    TiledCodes& product;
    const TensorMap& x;
    int token;

    template <typename Kind>
    SINTER_DEVICE void operator()(Kind, int step, int half) const {
      Runs::for_each_run(Kind(), step, half, [&](int, int column, int left) {
#pragma unroll 1
        for (int in_run = 0; in_run < left && in_run < kCodesRun; in_run += kCodesWindow) {
          product.window_.producer_acquire();
          product.window_.producer_expect(kTokenStage);
          cp_async_bulk_tensor_2d(cvta_to_shared(product.token_tile()), x, column + in_run, token,
                                  product.window_.full());
          product.window_.advance();
        }
      });
    }
  };
  struct MultiplyHalf {
    TiledCodes& product;
    typename Summed::Sums& sums;
    typename Summed::TokenSums& s2;
    Group (&scales)[2];
    int row;

    template <typename Kind>
    SINTER_DEVICE void operator()(Kind, int step, int half) const {
      product.codes_.consumer_wait();
      Runs::for_each_run(Kind(), step, half, [&](int round, int, int left) {
        Summed::template add_run<Kind::kStepRounds, Kind::kWhole>(
            sums, s2, scales, product.code_tile(), row, half, round, left, product.window_,
            product.read_, [&] { return product.token_tile(); });
      });
      product.codes_.consumer_release();
    }
  };

  SINTER_DEVICE Codes code_tile() const { return Codes(shared_ + codes_.stage() * kCodeStage); }
  SINTER_DEVICE unsigned char* token_tile() const {
    return shared_ + kStages.codes * kCodeStage + window_.stage() * kTokenStage;
  }

  // The sums of the 64 rows of the box at `position`.
  SINTER_DEVICE void multiply_tile(float (&sums)[kColumns / 2], int group, int position) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = thread_in_warpgroup() / 32;
    // A lane's first row of a tile; the other is 8 rows on. Warps beyond 32 rows repeat them.
    const int row = 64 * group + (warp * 16 + lane / 4) % Stored::kBox;
    Group scales[2] = {};
    if constexpr (Matrix::kRowScale) load_row_scales(scales, position);
    clear_sums(sums);
    typename Summed::TokenSums s2;
    clear_sums(s2);
    Runs::for_each_half(MultiplyHalf{*this, sums, s2, scales, row});
    if constexpr (Matrix::kRowScale) Summed::scale_rows(sums, scales, s2);
  }
  SINTER_DEVICE void load_row_scales(Group (&out)[2], int position) const {
    const int first = Stored::first_row(position) + static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = first + r * Stored::kApart;
      if (row < Config::kResultColumns) out[r] = Matrix::scale_of_row(matrix_, row);
    }
  }

  PipelineState<kStages.codes> codes_;
  PipelineState<kStages.tokens> window_;  // that is filled, or multiplied, next
  PipelineState<kStages.tokens> read_;    // that is given back next
  unsigned char* shared_;
  const int* matrix_;
  int tokens_;
  Tiles tiles_;
};

// result = x Wᵀ + bias, of `tokens` rows, W the dequantized matrix. wait() waits for earlier
// kernels; `early`: the matrix may be read before. `shared`: kSharedBytes for tiles, then the
// barriers. The block has a warpgroup for each 64 of kMostRows, and one more.
template <typename Config, typename Form, bool early, typename Wait, typename Result>
SINTER_DEVICE void multiply_codes(const TensorMap& x, const TensorMap& codes,
                                  const TensorMap& scales, const int* matrix,
                                  const typename Config::Element* bias, long long tokens,
                                  const Result& result, unsigned char* shared, Wait wait) {
  using Product = TiledCodes<Config, Form>;
  auto& stages = *reinterpret_cast<typename Product::Stages*>(shared + Config::kSharedBytes);
  if (threadIdx.x == 0) {
    Product::init(stages);
    fence_mbarrier_init();
  }
  __syncthreads();
  Product product(stages, shared, matrix, tokens);
  const int warpgroup = warpgroup_index();
  if (warpgroup > 0) {
    setmaxnreg_inc<tiled_linear_registers(Config::kMostRows / 64)>();
    wait();
    if (warpgroup <= Product::kWarpgroups) product.multiply(warpgroup - 1, bias, result);
    return;
  }
  setmaxnreg_dec<kTiledLinearCopyRegisters>();
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
  const bool leads = threadIdx.x % 32 == 0;
  if (!early || warp != 0) wait();
  if (warp == 0) {
    if (leads) product.produce_codes(codes, scales);
    __syncwarp();
    if (early) wait();
  } else if (warp == 1) {
    if (leads) product.produce_tokens(x);
  }
}

}  // namespace sinter
#endif
