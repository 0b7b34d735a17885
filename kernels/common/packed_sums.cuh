// A lane's sums of the products of a packed matrix's rows, in the order of kernels/gemv/order.h: a
// lane reads its codes of a step, 16 bytes, at once, and in each round multiplies 8 of them.
#pragma once

#include "kernels/common/packed_matrix.cuh"

namespace sinter {

// The state of `rows` rows that are summed together; empty for a dense matrix.
template <typename Matrix, typename T, int rows, int tokens, bool packed = Matrix::kPacked>
struct PackedSums {};

template <typename Matrix, typename T, int rows, int tokens>
struct PackedSums<Matrix, T, rows, tokens, true> {
  using Group = typename Matrix::Group;
  static constexpr int kRounds = Matrix::layout().step_rounds();

  Group of_row[rows] = {};     // where a row has one scale
  float operand[tokens] = {};  // sums of the operand, where a row has one minimum

  SINTER_DEVICE void load_scale(int r, const int* matrix, long long row) {
    of_row[r] = Matrix::scale_of_row(matrix, row);
  }
  SINTER_DEVICE void scale_sums(float (&sum)[rows][tokens]) const {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int t = 0; t < tokens; ++t)
        sum[r][t] = add_group(of_row[r], sum[r][t], operand[t], 0.0f);
  }

  // The products of `length` elements. `w`: where they begin in each row, a step; `x`: in the
  // operand, a lane's chunks with skip() and read() (NarrowChunks of kernels/gemv).
  template <typename Chunks>
  SINTER_DEVICE void add_run(float (&sum)[rows][tokens], const unsigned char* const (&w)[rows],
                             Chunks x, int have_tokens, int lane, int length) {
    int step = 0;
#pragma unroll 1
    for (; step < length / Matrix::kStepLength; ++step, x.skip(Matrix::kStepLength)) {
      typename Matrix::StepCodes codes[rows];
      typename Matrix::StepGroups scales[rows];
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const unsigned char* at = w[r] + step * Matrix::kStepBytes;
        codes[r].load(at, lane);
        if constexpr (!Matrix::kRowScale) scales[r].load(at, lane);
      }
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        Group group[rows];
        unsigned own[rows][Matrix::kWords];
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          if constexpr (Matrix::kRowScale)
            group[r] = of_row[r];
          else
            group[r] = scales[r].of_round(round);
          codes[r].of_round(own[r], round);
        }
        add_round(sum, own, group, x, round, have_tokens);
      }
    }
    const int left = length - step * Matrix::kStepLength;  // the last step of a row
    const int rounds = (left + kCodeRound - 1) / kCodeRound;
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
      if (round * kCodeRound + kCodeChunk * lane >= left) break;
      Group group[rows];
      unsigned own[rows][Matrix::kWords];
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const unsigned char* at = w[r] + step * Matrix::kStepBytes;
        if constexpr (Matrix::kRowScale)
          group[r] = of_row[r];
        else
          group[r] = Matrix::scale_of_chunk(at, lane, round, rounds);
        Matrix::load_chunk(own[r], at, lane, round, rounds);
      }
      add_round(sum, own, group, x, round, have_tokens);
    }
  }

 private:
  static SINTER_DEVICE float add_group(const Group& group, float s1, float s2, float sum) {
    sum = math::fma(group.scale, s1, sum);
    return Matrix::kMinima ? math::fma(-group.minimum, s2, sum) : sum;
  }

  // The chunk of a round.
  template <typename Chunks>
  SINTER_DEVICE void add_round(float (&sum)[rows][tokens],
                               const unsigned (&word)[rows][Matrix::kWords],
                               const Group (&group)[rows], const Chunks& x, int round,
                               int have_tokens) {
    float code[rows][kCodeChunk];
#pragma unroll
    for (int r = 0; r < rows; ++r) Matrix::widen(code[r], word[r], group[r].zero);
#pragma unroll
    for (int t = 0; t < tokens; ++t) {
      float b[kCodeChunk];
      x.read(b, (t < have_tokens ? t : have_tokens - 1) * Matrix::kLength + round * kCodeRound);
      float of_operand = Matrix::kRowScale ? operand[t] : 0.0f;
      if constexpr (Matrix::kMinima)
#pragma unroll
        for (int e = 0; e < kCodeChunk; ++e) of_operand = math::add(of_operand, b[e]);
      if constexpr (Matrix::kRowScale) operand[t] = of_operand;
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        float own = Matrix::kRowScale ? sum[r][t] : 0.0f;
#pragma unroll
        for (int e = 0; e < kCodeChunk; ++e) own = math::fma(code[r][e], b[e], own);
        sum[r][t] = Matrix::kRowScale ? own : add_group(group[r], own, of_operand, sum[r][t]);
      }
    }
  }
};

}  // namespace sinter
