// Sums of a packed matrix's products by a warpgroup: a group's sums are multiplied by the scales of
// its rows and added to the sums of whole rows (kernels/products/order.h).
#pragma once

#include "kernels/isa/wgmma.cuh"
#include "kernels/tile/layout.h"

#if SINTER_HAS_WGMMA
namespace sinter {

template <typename T, typename Matrix, int columns>
class CodeSums {
  using Group = typename Matrix::Group;
  static constexpr int kGroup = Matrix::layout().group;
  static constexpr bool kInWindow = kGroup > 0 && kGroup <= kCodesWindow;  // whole groups
  // Products of 16 columns: of a run, of a group in it, and those whose pairs are made together,
  // while the ones before are computed.
  static constexpr int kRunProducts = kCodesRun / 16;
  static constexpr int kGroupProducts = kInWindow ? kGroup / 16 : kRunProducts;
  static constexpr int kTogether = kGroupProducts < 2 ? 1 : 2;

 public:
  using Sums = float[columns / 2];

  // Adds the products of a run: round `round` of half `half` of the step in `codes`, of which a row
  // has `left` columns. `row`: the first of the lane's two rows in the tile. `window`: the tokens'
  // tile token_tile() that is multiplied next; `read`: the one that is given back next. Two sets of
  // pairs: one is made while the products of the other are computed.
  template <int rounds, bool whole, typename Codes, typename Window, typename Tokens>
  static SINTER_DEVICE void add_run(Sums& sums, Group (&scales)[2], const Codes& codes, int row,
                                    int half, int round, int left, Window& window, Window& read,
                                    Tokens token_tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Sums own;  // of a group
    Sums& s1 = Matrix::kRowScale ? sums : own;
    unsigned pairs[2][kTogether][4];
    if constexpr (!kInWindow && !Matrix::kRowScale)
      codes.template load_scales<rounds>(scales, row, half * kCodesHalfLanes, round);
#pragma unroll
    for (int first = 0; first < kRunProducts; first += kTogether) {
      if (first == kRunProducts / 2) {
        if constexpr (!whole) {
          wgmma_wait_group<0>(s1);
          if (left <= kCodesWindow) break;
        }
        window.advance();
      }
      if constexpr (kInWindow)
        if (first % kGroupProducts == 0)
          codes.template load_scales<rounds>(scales, row, half * kCodesHalfLanes + 2 * first,
                                             round);
      if (!kInWindow && first >= 2 * kTogether) wgmma_wait_group<1>(s1);
      unsigned(&own_pairs)[kTogether][4] = pairs[first / kTogether % 2];
      codes.template make_pairs<rounds>(own_pairs, scales, row, first, round, lane);
      if (first % (kRunProducts / 2) == 0) window.consumer_wait();
      const MatrixDescriptor tokens = matrix_descriptor<128>(token_tile(), 8 * 128, 16);
      wgmma_fence(s1);
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
        Wgmma<columns, T>::mma_async_rs_k_major(
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
    window.advance();
    read.consumer_release();
    if (left > kCodesWindow) read.consumer_release();
    if constexpr (!kInWindow && !Matrix::kRowScale) add_group(sums, scales, own);
  }

 private:
  static SINTER_DEVICE void add_group(Sums& sums, const Group (&scales)[2], const Sums& own) {
#pragma unroll
    for (int i = 0; i < columns / 2; ++i)
      sums[i] = math::fma(scales[i / 2 % 2].scale, own[i], sums[i]);
  }
};

}  // namespace sinter
#endif
