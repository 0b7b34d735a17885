// The result of products whose rows are rows of a matrix and whose columns are tokens.
//
// Config: ResultElement, kResultColumns, kBias, kSections and kPairs, as
// kernels/products/config.cuh says.
#pragma once

#include "kernels/tile/epilogue/port_rows.cuh"
#include "kernels/tile/epilogue/ports.cuh"
#include "kernels/tile/layout.h"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/sums/fragment.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// The sums that a warpgroup has of 64 rows and `kColumns` tokens. `kRows`: of the matrix in a tile,
// 32 or a multiple of 64. A box has the rows of a warpgroup.
template <typename Config, int kRows, int kColumns>
struct TransposedResult {
  static constexpr int kBox = kRows < kMatrixBox ? kRows : kMatrixBox;
  static constexpr bool kPaired = Config::kPairs > 0;
  using Pairs = PairedRows<kPaired ? Config::kPairs : kBox, kBox>;

  // The warp's 16 rows of the box at `position` are the matrix's rows from first_row on, 8 of them,
  // and 8 more, kApart rows on. A lane has sums of row lane / 4 of both.
  static constexpr int kApart = kPaired ? Config::kPairs : 8;
  static SINTER_DEVICE int first_row(int position) {
    const int warp = thread_in_warpgroup() / 32;
    return kPaired ? Pairs::matrix_row(position, warp) : position + warp * 16;
  }

  // Gives the result the rows of the box at `position`, of which the tile has `rows`, and the
  // tokens from `token` on. Of 16 tokens a lane takes one, and 8 of the warp's 16 rows.
  template <typename T, typename Result>
  static SINTER_DEVICE void store(float (&sums)[kColumns / 2], int position, int rows, int token,
                                  int tokens, const T* bias, const Result& result) {
    const int warp = thread_in_warpgroup() / 32, lane = static_cast<int>(threadIdx.x) % 32;
    if (warp * 16 >= rows) return;
    const int first = first_row(position);
    if constexpr (Config::kBias) add_bias(sums, bias, first + lane / 4);
    const int row = first + lane % 2 * kApart;
#pragma unroll
    for (int i = 0; i < kColumns / 2; i += 8) {
      if (token + 2 * i >= tokens) break;
      Chunk values;
      transpose_chunk(values, static_cast<const typename Config::ResultElement*>(nullptr),
                      *reinterpret_cast<const float(*)[8]>(sums + i), lane);
      const int own = token + 2 * i + lane % 4 / 2 * 8 + lane / 4;
      give(values, own, row, own < tokens && row < Config::kResultColumns, result);
    }
  }

 private:
  // Gives the result a token's 8 rows of the matrix from `row` on. All lanes of the warp call it.
  template <typename Result>
  static SINTER_DEVICE void give(const Chunk& values, long long token, int row, bool is_there,
                                 const Result& result) {
    constexpr int columns = Config::kResultColumns;
    if constexpr (Config::kSections) {
      PortRows<kPaired> rows(token * columns + row, values);
      rows.take_partner();
      if (is_there) result(token, row, rows);
    } else if (is_there) {
      write_port<columns % 8 == 0>(result, token * columns + row, columns - row, values);
    }
  }
  // `row`: the first of the lane's rows of the matrix.
  template <typename T>
  static SINTER_DEVICE void add_bias(float (&sums)[kColumns / 2], const T* bias, int row) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row + kApart * half >= Config::kResultColumns) break;
      const float added = load(bias + row + kApart * half);
#pragma unroll
      for (int i = 2 * half; i < kColumns / 2; i += 4) {
        sums[i] = math::add(sums[i], added);
        sums[i + 1] = math::add(sums[i + 1], added);
      }
    }
  }
};

}  // namespace sinter
#endif
