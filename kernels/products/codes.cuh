// tiled_codes; kernels/products/order.h states its order of operations.
//
// The rows of the matrix are the rows of wgmma's product and the tokens its columns, as in
// few.cuh, for any number of tokens. The codes of a tile come into shared memory as they are
// packed; a warpgroup turns the codes of its 64 rows into pairs of 16-bit floats, the operand that
// wgmma takes from registers. A thread has two sets of sums: the sums of a group are multiplied by
// the scales of the thread's two rows and added to the sums of the whole rows.
//
//   codes, scales │ half of a step │ half of a step │ ...       one thread, does not wait
//   tokens        │ 64 columns │ 64 columns │ ...               one thread
//   warpgroups    │ codes to pairs │ wgmma │ at a group's end: fma(scale, s1, sum) │ ...
//
// Two pipelines: a stage of codes has the codes of 16 lanes (ir/packed_codes.h) in all rounds of a
// step, one of tokens 64 columns of them. While a warpgroup makes pairs or adds a group, the others
// multiply.
//
// Config, the constants of a kernel, beside the constants in few.cuh:
//   Matrix           a PackedMatrix
//   kMostRows        of the matrix in a tile of any Form: 64 for each multiplying warpgroup
// And Form, the constants for some number of tokens:
//   kRows            of the matrix in a tile: 32, or a multiple of 64
//   kColumns         tokens in a tile: a multiple of 16
#pragma once

#include "kernels/common/code_pairs.cuh"
#include "kernels/common/packed_matrix.cuh"
#include "kernels/isa/tensor_map.cuh"
#include "kernels/products/order.h"
#include "kernels/products/transposed_result.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/product.cuh"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/scheduler.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

template <typename Config, typename Form>
class TiledCodes {
  using T = typename Config::Element;
  using Matrix = typename Config::Matrix;
  using Group = typename Matrix::Group;
  static constexpr int kRows = Form::kRows, kColumns = Form::kColumns;
  static constexpr int kLength = Config::kLength;
  using Stored = TransposedResult<Config, kRows, kColumns>;
  static constexpr int kBox = Stored::kBox;
  static constexpr int kScaleBytes = codes_scale_bytes(Matrix::layout());  // of a row in a stage
  static constexpr int kCodeStage = codes_stage_bytes(Matrix::layout(), kRows);
  static constexpr int kTokenStage = tile_bytes(kColumns, kCodesWindow);
  static constexpr CodesStages kStages =
      codes_stages(Config::kSharedBytes, kCodeStage, kTokenStage);
  static constexpr int kBits = Matrix::layout().bits, kGroup = Matrix::layout().group;
  static constexpr int kRounds = Matrix::layout().step_rounds();
  // Whole steps of a row, and what is left of it.
  static constexpr int kWholeSteps = kLength / Matrix::kStepLength;
  static constexpr int kLeft = kLength % Matrix::kStepLength;
  static constexpr int kRowTiles = (Config::kResultColumns + kRows - 1) / kRows;
  // Token tiles that are computed at about the same time: the L2 cache keeps their operands.
  static constexpr int kTokenGroup = (2048 + kColumns - 1) / kColumns;
  static constexpr bool kInWindow = kGroup > 0 && kGroup <= kCodesWindow;  // whole groups
  // Products of 16 columns: of a run, of a group in it, and those whose pairs are made together,
  // while the ones before are computed.
  static constexpr int kRunProducts = kCodesRun / 16;
  static constexpr int kGroupProducts = kInWindow ? kGroup / 16 : kRunProducts;
  static constexpr int kTogether = kGroupProducts < 2 ? 1 : 2;

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
        token_tiles_((tokens_ + kColumns - 1) / kColumns),
        tiles_(kRowTiles * token_tiles_) {}

  static SINTER_DEVICE void init(Stages& stages) {
    stages.codes.init(1, 4 * kWarpgroups);
    stages.tokens.init(1, 4 * kWarpgroups);
  }

  // One thread copies the codes and their scales, another one the tokens. A box of the matrix has
  // kBox rows, one of the tokens kColumns.
  SINTER_DEVICE void produce_codes(const TensorMap& codes, const TensorMap& scales) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round) {
      const Tile tile = tile_of(round);
      for_each_half(CopyCodes{*this, codes, scales, tile.row});
    }
  }
  SINTER_DEVICE void produce_tokens(const TensorMap& x) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round) {
      const Tile tile = tile_of(round);
      for_each_half(CopyTokens{*this, x, tile.token});
    }
  }

  // Warpgroup `group` of the multiplying ones.
  template <typename Result>
  SINTER_DEVICE void multiply(int group, const T* bias, const Result& result) {
#pragma unroll 1
    for (int round = 0; tiles_.has(round); ++round) {
      float sums[kColumns / 2];
      const Tile tile = tile_of(round);
      const int position = tile.row + 64 * group;
      multiply_tile(sums, group, position);
      Stored::store(sums, position, tile.token, tokens_, bias, result);
    }
  }

 private:
  // The first row of the matrix and the first token of a tile. Blocks that run at a time compute
  // the tiles of kTokenGroup tiles of tokens and of neighbouring rows.
  struct Tile {
    int row, token;
  };
  SINTER_DEVICE Tile tile_of(int round) const {
    const int tile = tiles_.tile(round), first = tile / (kTokenGroup * kRowTiles) * kTokenGroup;
    const int in_group = tile % (kTokenGroup * kRowTiles);
    const int left = token_tiles_ - first, together = left < kTokenGroup ? left : kTokenGroup;
    return {in_group / together * kRows, (first + in_group % together) * kColumns};
  }

  // The rounds of a step; whole: all of their columns are a row's.
  template <int rounds, bool whole>
  struct Step {
    static constexpr int kStepRounds = rounds;
    static constexpr bool kWhole = whole;
  };
  // Calls each(kind, step, half) for every half of a step that has columns of a row; `kind`: a
  // Step.
  template <typename Each>
  static SINTER_DEVICE void for_each_half(Each each) {
#pragma unroll 1
    for (int step = 0; step < kWholeSteps; ++step)
#pragma unroll 1
      for (int half = 0; half < 2; ++half) each(Step<kRounds, true>(), step, half);
    if constexpr (kLeft > 0)
#pragma unroll 1
      for (int half = 0; half < 2; ++half)
        if (half * kCodesRun < kLeft)
          each(Step<(kLeft + kCodeRound - 1) / kCodeRound, false>(), kWholeSteps, half);
  }
  // Calls each(round, column, left) for the runs of a half, the columns from `column` on, of which
  // a row has `left`.
  template <typename Kind, typename Each>
  static SINTER_DEVICE void for_each_run(Kind, int step, int half, Each each) {
#pragma unroll 1
    for (int round = 0; round < Kind::kStepRounds; ++round) {
      const int column = step * Matrix::kStepLength + round * kCodeRound + half * kCodesRun;
      const int left = Kind::kWhole ? kCodesRun : kLength - column;
      if (Kind::kWhole || left > 0) each(round, column, left);
    }
  }

  struct CopyCodes {
    TiledCodes& product;
    const TensorMap &codes, &scales;
    int first_row;  // of the tile

    template <typename Kind>
    SINTER_DEVICE void operator()(Kind, int step, int half) const {
      constexpr int rounds = Kind::kStepRounds, lane_bytes = kBits * rounds;
      product.codes_.producer_acquire();
      product.codes_.producer_expect(kRows * (kCodesHalfBytes + kScaleBytes));
      const int begin = step * Matrix::kStepBytes;
#pragma unroll
      for (int row = 0; row < kRows; row += kBox) {
#pragma unroll
        for (int panel = 0; panel < 2; ++panel)
          product.copy_box(
              product.code_panel(panel) + row * kCodesPanelRow, codes,
              begin + (half * kCodesHalfLanes + panel * kCodesHalfLanes / 2) * lane_bytes,
              first_row + row);
        if constexpr (kScaleBytes > 0)
          product.copy_box(product.scale_tile() + row * kScaleBytes, scales,
                           begin + Matrix::layout().scales(rounds), first_row + row);
      }
      product.codes_.advance();
    }
  };
  struct CopyTokens {
    TiledCodes& product;
    const TensorMap& x;
    int token;

    template <typename Kind>
    SINTER_DEVICE void operator()(Kind, int step, int half) const {
      for_each_run(Kind(), step, half, [&](int, int column, int left) {
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
    float (&sums)[kColumns / 2];
    Group (&scales)[2];
    int row;

    template <typename Kind>
    SINTER_DEVICE void operator()(Kind, int step, int half) const {
      product.codes_.consumer_wait();
      for_each_run(Kind(), step, half, [&](int round, int, int left) {
        product.multiply_run(Kind(), sums, scales, row, half, round, left);
      });
      product.codes_.consumer_release();
    }
  };

  // A box of the packed matrix, of kBox rows, that begins `bytes` bytes after the beginning of a
  // row.
  SINTER_DEVICE void copy_box(unsigned char* to, const TensorMap& map, int bytes,
                              int position) const {
    if constexpr (Stored::kPaired) {
      const int pair = position / 2;
      cp_async_bulk_tensor_5d(cvta_to_shared(to), map, bytes / 4, 0, 0,
                              pair % Config::kPairs / kFewTokensChunk, pair / Config::kPairs,
                              codes_.full());
    } else {
      cp_async_bulk_tensor_2d(cvta_to_shared(to), map, bytes / 4, position, codes_.full());
    }
  }
  SINTER_DEVICE unsigned char* code_panel(int panel) const {
    return shared_ + codes_.stage() * kCodeStage + panel * kRows * kCodesPanelRow;
  }
  SINTER_DEVICE unsigned char* scale_tile() const {
    return shared_ + codes_.stage() * kCodeStage + kRows * kCodesHalfBytes;
  }
  SINTER_DEVICE unsigned char* token_tile() const {
    return shared_ + kStages.codes * kCodeStage + window_.stage() * kTokenStage;
  }

  // The sums of the 64 rows of the box at `position`.
  SINTER_DEVICE void multiply_tile(float (&sums)[kColumns / 2], int group, int position) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = thread_in_warpgroup() / 32;
    // A lane's first row of a tile; the other is 8 rows on. Warps beyond 32 rows repeat them.
    const int row = 64 * group + (warp * 16 + lane / 4) % kBox;
    Group scales[2] = {};
    if constexpr (Matrix::kRowScale) load_row_scales(scales, position);
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
    for_each_half(MultiplyHalf{*this, sums, scales, row});
    if constexpr (Matrix::kRowScale)
#pragma unroll
      for (int i = 0; i < kColumns / 2; ++i)
        sums[i] = math::fma(scales[i / 2 % 2].scale, sums[i], 0.0f);
  }
  // Adds the products of a run. Two sets of pairs: one is made while the products of the other are
  // computed.
  template <typename Kind>
  SINTER_DEVICE void multiply_run(Kind, float (&sums)[kColumns / 2], Group (&scales)[2], int row,
                                  int half, int round, int left) {
    constexpr int rounds = Kind::kStepRounds;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float own[kColumns / 2];  // sums of a group
    float(&s1)[kColumns / 2] = Matrix::kRowScale ? sums : own;
    unsigned pairs[2][kTogether][4];
    if constexpr (!kInWindow && !Matrix::kRowScale)
      load_scales<rounds>(scales, row, half * kCodesHalfLanes, round);
#pragma unroll
    for (int first = 0; first < kRunProducts; first += kTogether) {
      if (first == kRunProducts / 2) {
        if constexpr (!Kind::kWhole) {
          wgmma_wait_group<0>(s1);
          if (left <= kCodesWindow) break;
        }
        window_.advance();
      }
      if constexpr (kInWindow)
        if (first % kGroupProducts == 0)
          load_scales<rounds>(scales, row, half * kCodesHalfLanes + 2 * first, round);
      if (!kInWindow && first >= 2 * kTogether) wgmma_wait_group<1>(s1);
      unsigned(&own_pairs)[kTogether][4] = pairs[first / kTogether % 2];
      make_pairs<rounds>(own_pairs, scales, row, first, round, lane);
      if (first % (kRunProducts / 2) == 0) window_.consumer_wait();
      const MatrixDescriptor tokens = matrix_descriptor<128>(token_tile(), 8 * 128, 16);
      wgmma_fence(s1);
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
        Wgmma<kColumns, T>::mma_async_rs_k_major(
            s1, own_pairs[i], tokens.advanced(32 * ((first + i) % (kRunProducts / 2))),
            Matrix::kRowScale || (first + i) % kGroupProducts > 0);
      wgmma_commit_group();
      if constexpr (kInWindow)
        if ((first + kTogether) % kGroupProducts == 0) {
          wgmma_wait_group<0>(s1);
          add_group(sums, scales, own);
        }
    }
    if constexpr (!kInWindow) wgmma_wait_group<0>(s1);
    window_.advance();
    read_.consumer_release();
    if (left > kCodesWindow) read_.consumer_release();
    if constexpr (!kInWindow && !Matrix::kRowScale) add_group(sums, scales, own);
  }
  static SINTER_DEVICE void add_group(float (&sums)[kColumns / 2], const Group (&scales)[2],
                                      const float (&own)[kColumns / 2]) {
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i)
      sums[i] = math::fma(scales[i / 2 % 2].scale, own[i], sums[i]);
  }

  // Fragments of kTogether products of a run, from product `first` on: codes less the zeros of the
  // lane's rows. A product has two chunks of 8 columns.
  template <int rounds>
  SINTER_DEVICE void make_pairs(unsigned (&out)[kTogether][4], const Group (&scales)[2], int row,
                                int first, int round, int lane) const {
    const T* type = nullptr;
    const unsigned char* panel = code_panel(first / (kRunProducts / 2));
    // The lane's columns of a chunk begin at `k` of a word.
    const int k = kBits == 4 ? lane % 4 * 2 : lane % 2 * 2;
    const int in_chunk = round * kBits + (kBits == 8 ? lane % 4 / 2 * 4 : 0);
#pragma unroll
    for (int i = 0; i < 4 * kTogether; ++i) {
      const int chunk = (2 * first + i / 2) % (kRunProducts), r = i % 2;
      const int at = panel_offset<rounds>(row, chunk, in_chunk) + 8 * r * kCodesPanelRow;
      unsigned& pair = out[i / 4][i % 4];
      pair = code_pair(typename Matrix::CodesType(), type,
                       *reinterpret_cast<const unsigned*>(panel + at), k);
      if constexpr (Matrix::kZeros) {
        const float zero = -scales[r].zero;
        pair = fma_rn(type, pair, one_pair(type), pack(type, zero, zero));
      }
    }
  }
  // The offset in a panel of what begins `in_chunk` bytes after a chunk of a row.
  template <int rounds>
  static SINTER_DEVICE int panel_offset(int row, int chunk, int in_chunk) {
    if constexpr (rounds * kBits == 16) {
      return (row * kCodesPanelRow + row % 8 * 16 + in_chunk) ^ chunk * 16;
    } else {
      const int bytes = chunk * kBits * rounds + in_chunk;
      return row * kCodesPanelRow + (bytes / 16 ^ row % 8) * 16 + bytes % 16;
    }
  }

  // The scales of the group of a chunk of a step, of the lane's two rows.
  template <int rounds>
  SINTER_DEVICE void load_scales(Group (&out)[2], int row, int chunk, int round) const {
    constexpr CodeLayout layout = Matrix::layout();
    const int entry = layout.entry(chunk, round, rounds), begin = layout.scales(rounds);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const unsigned char* own = scale_tile() + (row + 8 * r) * kScaleBytes;
      out[r] = Matrix::group_at(own + entry * layout.scale_bytes,
                                own + layout.zeros_at(rounds) - begin + 2 * entry, nullptr);
    }
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
  int tokens_, token_tiles_;
  RoundRobinTiles tiles_;
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
