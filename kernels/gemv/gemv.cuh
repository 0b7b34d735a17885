// gemv: products of a matrix and a few rows, in the order of kernels/gemv/order.h, at the speed at
// which memory gives the matrix.
//
// A block computes a run of neighbouring classes of rows (ir/colocation.h). Where the
// device has bulk copies, each warp reads its rows through a multistage pipeline in shared memory.
// Its first copies are issued before the block waits for earlier kernels, so that the matrix is
// loaded while these still run and while the prologue computes the operand. Other devices load
// directly from memory.
//
//   warp:      | issue first stages | prologue: rows of the operand | consume stage, issue next ...
//   | memory:        | stage 0 | stage 1 | inputs of the prologue | stage 2 | stage 3 | stage 4 |
//   ...
//
// One token: a warp takes a row, or a split of one, at a time, in the stated order. Several tokens
// of a 16-bit type: warps multiply tiles of 16 rows by tensor cores; a warp takes the stages whose
// number is congruent to its own, and the sums of the warps are added in order. Within a stage the
// order is the hardware's and depends on the row's length alone. Several tokens of other types, and
// all tokens of a packed matrix, are computed like one.
//
// Shared memory: the barriers of the pipelines, then what kernels/gemv/layout.h lays out.
#pragma once

#include "kernels/common/packed_sums.cuh"
#include "kernels/gemv/gemv_code_tiles.cuh"
#include "kernels/gemv/gemv_pipeline.cuh"

namespace sinter {

constexpr int kGemvStep = 8 * kGemvLanes;  // elements that a warp multiplies at once

template <typename Config>
class Gemv : public GemvPipeline<Config> {
  using Stream = GemvPipeline<Config>;
  using Stream::begin_, Stream::count_, Stream::first_, Stream::kGroups, Stream::kPipelined,
      Stream::kWide, Stream::kShares, Stream::kTileGroup, Stream::kTiles, Stream::lane_,
      Stream::length_, Stream::matrix_, Stream::mine_, Stream::operand_, Stream::splits_,
      Stream::stage_length_, Stream::place, Stream::rounded, Stream::row_of_block,
      Stream::row_of_warp, Stream::rows_, Stream::shared_operand, Stream::sums_, Stream::tile_sums_,
      Stream::tokens_, Stream::warp_;
  using typename Stream::Matrix, typename Stream::T;
#if SINTER_HAS_BULK_COPY
  using Stream::issue, Stream::issue_tile, Stream::run_bytes_, Stream::wait;
#endif

 public:
  using Stream::fill;
  using Stream::Stream;

  // Where a prologue writes the operand's rows [tokens, kLength]. A barrier must follow.
  SINTER_DEVICE auto operand() const {
    if constexpr (kWide)
      return WideRow<T>{reinterpret_cast<float*>(operand_), 0};
    else
      return SharedRows<T>{operand_};
  }
  // Copies the operand's rows [tokens, kLength] from memory, or leaves them there.
  SINTER_DEVICE void take(const T* rows) {
    if (!shared_operand(rounded(tokens_))) {
      operand_ = const_cast<T*>(rows);
      return;
    }
    constexpr int words = Config::kLength * static_cast<int>(sizeof(T)) / 16;  // of a row
    constexpr int threads = 32 * Config::kWarps, share = (words + threads - 1) / threads;
    constexpr int own = share < 4 ? share : 4;  // of a thread at a time
    const uint4* from = reinterpret_cast<const uint4*>(rows);
    uint4* to = reinterpret_cast<uint4*>(operand_);
    const int end = tokens_ * words;
    for (int begin = 0; begin < end; begin += own * threads) {
      const int first = begin + static_cast<int>(threadIdx.x);
      uint4 word[own];
#pragma unroll
      for (int k = 0; k < own; ++k)
        if (first + k * threads < end) word[k] = from[first + k * threads];
      fill();
#pragma unroll
      for (int k = 0; k < own; ++k) {
        if (first + k * threads >= end) continue;
        if constexpr (kWide) {
          float wide[8];
          widen(wide, rows, word[k]);
          store_chunk(operand() + 8 * (first + k * threads), wide);
        } else {
          to[first + k * threads] = word[k];
        }
      }
    }
    __syncthreads();
  }

  // The sums of the block, addressed like the whole result; run() computes them.
  SINTER_DEVICE GemvSums<Config> sums() const { return {sums_, first_, count_, splits_, 0}; }
  // Computes all sums of the block; ends with a barrier.
  SINTER_DEVICE void run() {
    fill();
    if (tokens_ == 1) {
      run_rows<1>();
    } else if constexpr (Config::kTokens > 1) {
      if (tokens_ > 1) run_several();
    }
    __syncthreads();
  }

 private:
  // The index of the sum of the block's `own`-th row, for token 0.
  SINTER_DEVICE int sum_of_row(int own) const {
    return (own % Config::kUnits * count_ + own / Config::kUnits) * splits_;
  }

  SINTER_DEVICE void run_several() {
#if SINTER_HAS_MMA
    if constexpr (kTiles && Matrix::kPacked)
      run_code_tiles();
    else if constexpr (kTiles)
      run_tiles();
    else
#endif
      run_rows<kMaxGemvTokens>();
  }

  static SINTER_DEVICE void read_matrix(float (&out)[8], const T* p) {
    if constexpr (kPipelined)
      read_chunk(out, p);
    else
      load_chunk(out, p);
  }

  // Adds the products of a chunk of `have` rows and the operand. `w`, `x`: the lane's first chunks;
  // `i`: elements from there.
  template <int tokens, int rows>
  SINTER_DEVICE void add_step(float (&sum)[rows][tokens], const T* const (&w)[rows], const T* x,
                              int i, int have) const {
    float a[rows][8];
#pragma unroll
    for (int r = 0; r < rows; ++r)
      if (r < have) read_matrix(a[r], w[r] + i);
#pragma unroll
    for (int t = 0; t < tokens; ++t) {
      float b[8];
      const int token = t < tokens_ ? t : tokens_ - 1;
      read_chunk(b, x + token * Config::kLength + i);
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (r < have) sum[r][t] = math::fma(a[r][e], b[e], sum[r][t]);
    }
  }

  // The products of a run of `length` elements of a dense row. `w`: its rows, `x`: the operand
  // there.
  template <int tokens, int rows>
  SINTER_DEVICE void add_run(float (&sum)[rows][tokens], const unsigned char* const (&w)[rows],
                             const T* x, int length, int have) const {
    const T* row[rows];
#pragma unroll
    for (int r = 0; r < rows; ++r) row[r] = reinterpret_cast<const T*>(w[r]) + 8 * lane_;
    x += 8 * lane_;
    if (tokens == 1 && length >= Config::kStageLength) {
      static_assert(Config::kStageLength % kGemvStep == 0);
#pragma unroll
      for (int i = 0; i < Config::kStageLength; i += kGemvStep) add_step(sum, row, x, i, have);
    } else {
      // With several tokens the body is long already: unrolling would double the compile time.
#pragma unroll 1
      for (int i = 0; i < length - 8 * lane_; i += kGemvStep) add_step(sum, row, x, i, have);
    }
  }

  template <int tokens>
  SINTER_DEVICE void run_rows() {
    constexpr int rows = gemv_rows_at_once(tokens, Matrix::kPacked);
    constexpr bool shared = shared_operand(tokens);
    const T* operand = operand_;
#if SINTER_HAS_BULK_COPY
    if constexpr (shared) __builtin_assume(__isShared(operand));
#endif
    for (int k = 0; k < mine_; k += rows) {
      const int have = mine_ - k < rows ? mine_ - k : rows;
      float sum[rows][tokens] = {};
      PackedSums<Matrix, T, rows, tokens> codes;  // of a packed matrix
      if constexpr (Matrix::kPacked && Matrix::kRowScale)
        for (int r = 0; r < have; ++r) codes.load_scale(r, matrix_, row_of_warp(k + r));
      for (int begin = 0; begin < length_; begin += stage_length_) {
        const unsigned char* w[rows];
#if SINTER_HAS_BULK_COPY
        const unsigned char* stage = wait();
#endif
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          // Where packed rows are missing, the sums of another are computed and not kept: a branch
          // would cost more.
          const int row = r < have ? r : 0;
#if SINTER_HAS_BULK_COPY
          w[r] = stage + row * run_bytes_;
#else
          w[r] = place(k + row, begin);
#endif
        }
        const T* x = operand + begin_ + begin;
        const int length = length_ - begin < stage_length_ ? length_ - begin : stage_length_;
        if constexpr (kWide)
          codes.add_run(sum, w,
                        WideChunks(reinterpret_cast<const float*>(operand) + begin_ + begin, lane_),
                        tokens_, lane_, length);
        else if constexpr (Matrix::kPacked)
          codes.add_run(sum, w, NarrowChunks<T>(x, lane_), tokens_, lane_, length);
        else
          add_run(sum, w, x, length, have);
#if SINTER_HAS_BULK_COPY
        __syncwarp();
        issue();
#endif
      }
      if constexpr (Matrix::kPacked && Matrix::kRowScale) codes.scale_sums(sum);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const int at =
            sum_of_row(warp_ / Config::kSplits + (k + r) * kGroups) + warp_ % Config::kSplits;
#pragma unroll
        for (int t = 0; t < tokens; ++t) {
#pragma unroll
          for (int stride = 1; stride < kGemvLanes; stride *= 2)
            sum[r][t] = math::add(sum[r][t], __shfl_xor_sync(0xffffffffu, sum[r][t], stride));
          if (lane_ == 0 && t < tokens_ && r < have) sums_[t * rows_ * splits_ + at] = sum[r][t];
        }
      }
    }
  }

#if SINTER_HAS_MMA
  // The 8 elements of a row from i on, zeros where there are none.
  static SINTER_DEVICE uint4 words(const T* row, int i, int length) {
    return i < length ? *reinterpret_cast<const uint4*>(row + i) : make_uint4(0, 0, 0, 0);
  }
  SINTER_DEVICE void run_tiles() {
    // In a fragment a lane has the elements 2q, 2q + 1, 2q + 8, 2q + 9 of 16. Which of a row's
    // elements those are is free, if it is the same for matrix and operand: two products take 8
    // neighbours.
    const int row = lane_ / 4, q = lane_ % 4;
    const T* x = operand_ + (row < tokens_ ? row : tokens_ - 1) * Config::kLength;
    for (int first = 0; first < rows_; first += kTileGroup * kTileRows) {
      float sums[kShares][kTileGroup][4] = {};
#pragma unroll
      for (int turn = 0; turn < kShares; ++turn) {
        for (int begin = (warp_ + turn * Config::kWarps) * kTileStageLength;
             begin < Config::kLength; begin += kTileWarps * kTileStageLength) {
          const int left = Config::kLength - begin,
                    length = left < kTileStageLength ? left : kTileStageLength;
          constexpr int steps = kTileStageLength / 32;
          uint4 operand[steps];  // serves all tiles
#pragma unroll
          for (int step = 0; step < steps; ++step)
            operand[step] = words(x + begin, 8 * q + 32 * step, length);
#pragma unroll
          for (int tile = 0; tile < kTileGroup; ++tile) {
            if (first + tile * kTileRows >= rows_) break;
#if SINTER_HAS_BULK_COPY
            const T* stage = reinterpret_cast<const T*>(wait());
            const T *upper = stage + row * kTileStageLength, *lower = upper + 8 * kTileStageLength;
#else
            const auto at = [&](int r) {
              const int own = first + tile * kTileRows + r;
              return matrix_ +
                     static_cast<long long>(row_of_block(own < rows_ ? own : rows_ - 1)) *
                         Config::kLength +
                     begin;
            };
            const T *upper = at(row), *lower = at(row + 8);
#endif
#pragma unroll
            for (int step = 0; step < steps; ++step) {
              const uint4 a = words(upper, 8 * q + 32 * step, length);
              const uint4 b = words(lower, 8 * q + 32 * step, length), c = operand[step];
              mma_m16n8k16(sums[turn][tile], matrix_, a.x, b.x, a.y, b.y, c.x, c.y);
              mma_m16n8k16(sums[turn][tile], matrix_, a.z, b.z, a.w, b.w, c.z, c.w);
            }
#if SINTER_HAS_BULK_COPY
            __syncwarp();
            issue_tile();
#endif
          }
        }
      }
#pragma unroll
      for (int tile = 0; tile < kTileGroup; ++tile) {
        if (first + tile * kTileRows >= rows_) break;
#pragma unroll
        for (int turn = 0; turn < kShares; ++turn)
          give_tile(sums[turn][tile], tile, warp_ + turn * Config::kWarps);
        __syncthreads();  // the other half of tile_sums_ is free when all are here
        add_shares(first + tile * kTileRows, tile);
      }
    }
  }
  // The same with a packed matrix: a share takes a run of neighbouring units of each row.
  SINTER_DEVICE void run_code_tiles() {
    using Codes = CodeTiles<Matrix, T, kTileGroup>;
    const int row = lane_ / 4;
    const T* x = operand_ + (row < tokens_ ? row : tokens_ - 1) * Config::kLength;
    const auto begin_of = [&](int turn) {
      return Codes::kUnits * (warp_ + turn * Config::kWarps) / kTileWarps;
    };
    const auto end_of = [&](int turn) {
      return Codes::kUnits * (warp_ + turn * Config::kWarps + 1) / kTileWarps;
    };
    const auto row_of_tile = [&](int first, int tile, int r) {
      const int own = first + tile * kTileRows + r * 8 + row;
      return row_of_block(own < rows_ ? own : rows_ - 1);
    };
    const unsigned char* at[kTileGroup][2];
    const auto find_rows = [&](int first) {
#pragma unroll
      for (int tile = 0; tile < kTileGroup; ++tile)
#pragma unroll
        for (int r = 0; r < 2; ++r)
          at[tile][r] = Matrix::at(matrix_, row_of_tile(first, tile, r), 0);
    };
    typename Codes::Unit next;
    // The unit to load next: it walks the units of a turn, then the next turns, then the next
    // tiles.
    int next_first = 0, next_turn = 0, next_unit = begin_of(0);
    const auto load_next = [&] {
      while (next_first < rows_ && next_unit >= end_of(next_turn)) {
        if (++next_turn == kShares) {
          next_turn = 0;
          next_first += kTileGroup * kTileRows;
          if (next_first < rows_) find_rows(next_first);
        }
        next_unit = begin_of(next_turn);
      }
      if (next_first < rows_) Codes::load(next, at, next_unit++, lane_);
    };
    find_rows(0);
    load_next();
    for (int first = 0; first < rows_; first += kTileGroup * kTileRows) {
#pragma unroll
      for (int turn = 0; turn < kShares; ++turn) {
        Codes codes;
#pragma unroll 1
        for (int unit = begin_of(turn); unit < end_of(turn); ++unit) {
          const typename Codes::Unit own = next;
          load_next();
          codes.add(own, x, unit, lane_);
        }
#pragma unroll
        for (int tile = 0; tile < kTileGroup; ++tile) {
          if constexpr (Matrix::kRowScale)
            for (int r = 0; r < 2; ++r)
              codes.scale_rows(tile, r, Matrix::scale_of_row(matrix_, row_of_tile(first, tile, r)));
          give_tile(codes.sums[tile], tile, warp_ + turn * Config::kWarps);
        }
      }
      __syncthreads();
#pragma unroll
      for (int tile = 0; tile < kTileGroup; ++tile)
        if (first + tile * kTileRows < rows_) add_shares(first + tile * kTileRows, tile);
      __syncthreads();  // tile_sums_ is free again
    }
  }
  // Writes a share's sums of a tile: rows `lane / 4` and 8 more, two tokens.
  SINTER_DEVICE void give_tile(const float (&sums)[4], int half, int share) const {
    const int columns = gemv_tile_tokens(tokens_), token = 2 * (lane_ % 4);
    if (token >= columns) return;
    float* own =
        tile_sums_ + ((half * kTileWarps + share) * kTileRows + lane_ / 4) * columns + token;
    own[0] = sums[0];
    own[1] = sums[1];
    own[8 * columns] = sums[2];
    own[8 * columns + 1] = sums[3];
  }
  // The sums of the tile that begins with the block's row `first`.
  SINTER_DEVICE void add_shares(int first, int half) const {
    const int columns = gemv_tile_tokens(tokens_), size = kTileRows * columns;
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kTileTokens;
         i += 32 * Config::kWarps) {
      const int r = i / kTileTokens, t = i % kTileTokens;
      if (first + r >= rows_ || t >= tokens_) continue;
      const float* of_shares = tile_sums_ + half * kTileWarps * size + r * columns + t;
      float sum = of_shares[0];
      for (int w = 1; w < kTileWarps; ++w) sum = math::add(sum, of_shares[w * size]);
      sums_[t * rows_ + sum_of_row(first + r)] = sum;
    }
  }
#endif
};

}  // namespace sinter
