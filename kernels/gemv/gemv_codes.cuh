// The products of a packed matrix's rows, in the order of kernels/gemv/order.h: a lane reads its
// codes of a step, 16 bytes, at once, and in each round multiplies 8 of them.
#pragma once

#include "kernels/common/packed_matrix.cuh"
#include "kernels/gemv/gemv_values.cuh"
#include "kernels/gemv/order.h"

namespace sinter {

// The state of `rows` rows that are summed together; empty for a dense matrix.
template <typename Matrix, typename T, int rows, int tokens, bool packed = Matrix::kPacked>
struct GemvCodes {};

template <typename Matrix, typename T, int rows, int tokens>
struct GemvCodes<Matrix, T, rows, tokens, true> {
  using Group = typename Matrix::Group;
  static constexpr int kRounds = Matrix::layout().step_rounds();
  static constexpr int kLaneWords = 4;  // of a step

  Group of_row[rows] = {};     // where a row has one scale
  float operand[tokens] = {};  // sums of the operand, where a row has one minimum

  SINTER_DEVICE void load_scale(int r, const int* matrix, int row) {
    of_row[r] = Matrix::scale_of_row(matrix, row);
  }
  SINTER_DEVICE void scale_sums(float (&sum)[rows][tokens], int have) const {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int t = 0; t < tokens; ++t)
        if (r < have) sum[r][t] = add_group(of_row[r], sum[r][t], operand[t], 0.0f);
  }

  // The products of `length` elements. `w`: where they begin in each row, a step; `x`: in the
  // operand.
  SINTER_DEVICE void add_run(float (&sum)[rows][tokens], const unsigned char* const (&w)[rows],
                             const T* x, int have_tokens, int lane, int length, int have) {
    int step = 0;
#pragma unroll 1
    for (; step < length / Matrix::kStepLength; ++step) {
      unsigned word[rows][kLaneWords];
#pragma unroll
      for (int r = 0; r < rows; ++r)
        if (r < have) {
          const uint4 all =
              *reinterpret_cast<const uint4*>(w[r] + step * Matrix::kStepBytes + 16 * lane);
          word[r][0] = all.x, word[r][1] = all.y, word[r][2] = all.z, word[r][3] = all.w;
        }
#pragma unroll
      for (int round = 0; round < kRounds; ++round)
        add_round(sum, w, word, x, have_tokens, lane, step, round, kRounds, round, have);
    }
    const int left = length - step * Matrix::kStepLength;  // the last step of a row
    const int rounds = (left + kCodeRound - 1) / kCodeRound;
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
      if (round * kCodeRound + kCodeChunk * lane >= left) break;
      unsigned word[rows][kLaneWords];
#pragma unroll
      for (int r = 0; r < rows; ++r)
        if (r < have)
#pragma unroll
          for (int k = 0; k < Matrix::kWords; ++k)
            word[r][k] = reinterpret_cast<const unsigned*>(w[r] + step * Matrix::kStepBytes +
                                                           (lane * rounds + round) *
                                                               Matrix::layout().lane_bytes())[k];
      add_round(sum, w, word, x, have_tokens, lane, step, round, rounds, 0, have);
    }
  }

 private:
  static SINTER_DEVICE float add_group(const Group& group, float s1, float s2, float sum) {
    sum = math::fma(group.scale, s1, sum);
    return Matrix::kMinima ? math::fma(-group.minimum, s2, sum) : sum;
  }

  // The chunk of a round; `at`: its place in `word`, in rounds.
  SINTER_DEVICE void add_round(float (&sum)[rows][tokens], const unsigned char* const (&w)[rows],
                               const unsigned (&word)[rows][kLaneWords], const T* x,
                               int have_tokens, int lane, int step, int round, int rounds, int at,
                               int have) {
    Group group[rows];
    float code[rows][kCodeChunk];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      if (r >= have) continue;
      if constexpr (Matrix::kRowScale)
        group[r] = of_row[r];
      else
        group[r] = Matrix::scale_of_chunk(w[r] + step * Matrix::kStepBytes, lane, round, rounds);
      unsigned own[Matrix::kWords];
#pragma unroll
      for (int k = 0; k < Matrix::kWords; ++k) own[k] = word[r][at * Matrix::kWords + k];
      Matrix::widen(code[r], own, group[r].zero);
    }
    x += step * Matrix::kStepLength + round * kCodeRound + kCodeChunk * lane;
#pragma unroll
    for (int t = 0; t < tokens; ++t) {
      float b[kCodeChunk];
      read_chunk(b, x + (t < have_tokens ? t : have_tokens - 1) * Matrix::kLength);
      float of_operand = Matrix::kRowScale ? operand[t] : 0.0f;
      if constexpr (Matrix::kMinima)
#pragma unroll
        for (int e = 0; e < kCodeChunk; ++e) of_operand = math::add(of_operand, b[e]);
      if constexpr (Matrix::kRowScale) operand[t] = of_operand;
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        if (r >= have) continue;
        float own = Matrix::kRowScale ? sum[r][t] : 0.0f;
#pragma unroll
        for (int e = 0; e < kCodeChunk; ++e) own = math::fma(code[r][e], b[e], own);
        sum[r][t] = Matrix::kRowScale ? own : add_group(group[r], own, of_operand, sum[r][t]);
      }
    }
  }
};

}  // namespace sinter
