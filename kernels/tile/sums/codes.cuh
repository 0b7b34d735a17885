// Sums of a packed matrix's products by a warpgroup: a group's sums are multiplied by the scales of
// its rows and added to the sums of whole rows (kernels/products/order.h). With minima the tokens'
// elements are summed by products with a matrix of ones, so that a lane has the sums of its tokens.
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
  // while the ones before are computed; one with minima, whose sums leave few registers.
  static constexpr int kRunProducts = kCodesRun / 16;
  static constexpr int kGroupProducts = kInWindow ? kGroup / 16 : kRunProducts;
  static constexpr int kTogether = kGroupProducts < 2 || Matrix::kMinima ? 1 : 2;

 public:
  using Sums = float[columns / 2];
  // Sums of the tokens' elements.
  using TokenSums = float[Matrix::kMinima ? columns / 2 : 1];

  // Adds the products of a run: round `round` of half `half` of the step in `codes`, of which a row
  // has `left` columns. `row`: the first of the lane's two rows in the tile. `window`: the tokens'
  // tile token_tile() that is multiplied next; `read`: the one that is given back next. `s2`: of
  // whole rows where a row has one scale, else of a group. Two sets of pairs: one is made while the
  // products of the other are computed.
  template <int rounds, bool whole, typename Codes, typename Window, typename Tokens>
  static SINTER_DEVICE void add_run(Sums& sums, TokenSums& s2, Group (&scales)[2],
                                    const Codes& codes, int row, int half, int round, int left,
                                    Window& window, Window& read, Tokens token_tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Sums own;  // of a group
    Sums& s1 = Matrix::kRowScale ? sums : own;
    unsigned pairs[2][kTogether][4];
    const unsigned one = one_pair(static_cast<const T*>(nullptr)), ones[4] = {one, one, one, one};
    if constexpr (!kInWindow && !Matrix::kRowScale)
      codes.template load_scales<rounds>(scales, row, half * kCodesHalfLanes, round);
#pragma unroll
    for (int first = 0; first < kRunProducts; first += kTogether) {
      if (first == kRunProducts / 2) {
        if constexpr (!whole) {
          wait_for_all_but<0>(s1, s2);
          if (left <= kCodesWindow) break;
        }
        window.advance();
      }
      if constexpr (kInWindow)
        if (first % kGroupProducts == 0)
          codes.template load_scales<rounds>(scales, row, half * kCodesHalfLanes + 2 * first,
                                             round);
      if (first % kGroupProducts >= 2 * kTogether) wait_for_all_but<1>(s1, s2);
      unsigned(&own_pairs)[kTogether][4] = pairs[first / kTogether % 2];
      codes.template make_pairs<rounds>(own_pairs, scales, row, half, first, round, lane);
      if (first % (kRunProducts / 2) == 0) window.consumer_wait();
      const MatrixDescriptor tokens = matrix_descriptor<128>(token_tile(), 8 * 128, 16);
      if constexpr (Matrix::kMinima) warpgroup_fence_operand(s2);
      wgmma_fence(s1);
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const MatrixDescriptor step = tokens.advanced(32 * ((first + i) % (kRunProducts / 2)));
        const bool adds = Matrix::kRowScale || (first + i) % kGroupProducts > 0;
        Wgmma<columns, T>::mma_async_rs_k_major(s1, own_pairs[i], step, adds);
        if constexpr (Matrix::kMinima)
          Wgmma<columns, T>::mma_async_rs_k_major(s2, ones, step, adds);
      }
      wgmma_commit_group();
      if constexpr (kInWindow)
        if ((first + kTogether) % kGroupProducts == 0) {
          wait_for_all_but<0>(s1, s2);
          add_group(sums, scales, own, s2);
        }
    }
    if constexpr (!kInWindow) wait_for_all_but<0>(s1, s2);
    window.advance();
    read.consumer_release();
    if (left > kCodesWindow) read.consumer_release();
    if constexpr (!kInWindow && !Matrix::kRowScale) add_group(sums, scales, own, s2);
  }

  // Scales the sums of rows that have one scale.
  static SINTER_DEVICE void scale_rows(Sums& sums, const Group (&scales)[2], const TokenSums& s2) {
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) sums[i] = scaled(scales, sums[i], s2, i, 0.0f);
  }

 private:
  static SINTER_DEVICE void add_group(Sums& sums, const Group (&scales)[2], const Sums& s1,
                                      const TokenSums& s2) {
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) sums[i] = scaled(scales, s1[i], s2, i, sums[i]);
  }
  // `sum` and the scaled sum of a group, element `i` of a lane's.
  static SINTER_DEVICE float scaled(const Group (&scales)[2], float s1, const TokenSums& s2, int i,
                                    float sum) {
    const Group& group = scales[i / 2 % 2];
    sum = math::fma(group.scale, s1, sum);
    if constexpr (Matrix::kMinima) sum = math::fma(-group.minimum, s2[i], sum);
    return sum;
  }
  template <int groups>
  static SINTER_DEVICE void wait_for_all_but(Sums& s1, TokenSums& s2) {
    wgmma_wait_group<groups>(s1);
    if constexpr (Matrix::kMinima) warpgroup_fence_operand(s2);
  }
};

}  // namespace sinter
#endif
