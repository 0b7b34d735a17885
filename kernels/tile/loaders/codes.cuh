// Tiles of a packed matrix (ir/packed_codes.h) in shared memory, and pairs of 16-bit floats made of
// them, the operand that wgmma takes from registers.
#pragma once

#include "kernels/common/code_pairs.cuh"
#include "kernels/common/packed_matrix.cuh"
#include "kernels/isa/tensor_map.cuh"
#include "kernels/tile/layout.h"

#if SINTER_HAS_WGMMA
namespace sinter {

// The order in which a product walks rows of `length` codes (kernels/products/order.h): steps, the
// halves of a step's lanes, and the runs of a half, the columns of its lanes in a round.
template <typename Matrix, int length>
struct CodeRuns {
  static constexpr int kRounds = Matrix::layout().step_rounds();
  // Whole steps of a row, and what is left of it.
  static constexpr int kWholeSteps = length / Matrix::kStepLength;
  static constexpr int kLeft = length % Matrix::kStepLength;

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
      const int left = Kind::kWhole ? kCodesRun : length - column;
      if (Kind::kWhole || left > 0) each(round, column, left);
    }
  }
};

// A stage: half of a step of `rows` rows of the matrix, as boxes of `box` rows bring it. Each row
// has two panels of codes of the first plane, then the second plane and the scales of the step.
template <typename T, typename Matrix, int rows, int box>
class CodesTile {
  using Group = typename Matrix::Group;
  static constexpr int kBits = Matrix::layout().low_bits(), kUpper = Matrix::kUpper;
  static constexpr int kScaleBytes = codes_scale_bytes(Matrix::layout());  // of a row

 public:
  static constexpr int kBytes = rows * (kCodesHalfBytes + kScaleBytes);  // that boxes bring
  // Products of 16 columns in a panel of a run.
  static constexpr int kPanelProducts = kCodesRun / 32;

  explicit SINTER_DEVICE CodesTile(unsigned char* stage) : stage_(stage) {}

  // Copies a half of step `step`, of `rounds` rounds, by copy(to, map, byte, row): a box from that
  // row and that byte of a row on.
  template <int rounds, typename Copy>
  SINTER_DEVICE void fill(const TensorMap& codes, const TensorMap& scales, int step, int half,
                          Copy copy) const {
    constexpr int lane_bytes = kBits * rounds;
    const int begin = step * Matrix::kStepBytes;
#pragma unroll
    for (int row = 0; row < rows; row += box) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        copy(panel(i) + row * kPanelRow, codes,
             begin + (half * kCodesHalfLanes + i * kCodesHalfLanes / 2) * lane_bytes, row);
      if constexpr (kScaleBytes > 0)
        copy(scale_rows() + row * kScaleBytes, scales, begin + Matrix::layout().upper(rounds), row);
    }
  }

  // Fragments of `count` products of 16 columns, from product `first` of a run of half `half` on:
  // codes less the zeros of the lane's rows, `row` and 8 more. A product has two chunks of 8
  // columns.
  template <int rounds, int count>
  SINTER_DEVICE void make_pairs(unsigned (&out)[count][4], const Group (&scales)[2], int row,
                                int half, int first, int round, int lane) const {
    const T* type = nullptr;
    const unsigned char* codes = panel(first / kPanelProducts);
    // The lane's columns of a chunk begin at `k` of a word.
    const int k = kBits == 4 ? lane % 4 * 2 : lane % 2 * 2;
    const int in_chunk = round * kBits + (kBits == 8 ? lane % 4 / 2 * 4 : 0);
#pragma unroll
    for (int i = 0; i < 4 * count; ++i) {
      const int chunk = (2 * first + i / 2) % (2 * kPanelProducts), r = i % 2;
      const int at = panel_offset<rounds>(row, chunk, in_chunk) + 8 * r * kPanelRow;
      unsigned& pair = out[i / 4][i % 4];
      const unsigned word = *reinterpret_cast<const unsigned*>(codes + at);
      if constexpr (kUpper > 0) {
        const int chunk_of_step = half * kCodesHalfLanes + 2 * first + i / 2;
        const unsigned upper = load_bytes<kUpper>(scale_rows() + (row + 8 * r) * kScaleBytes +
                                                  (chunk_of_step * rounds + round) * kUpper);
        pair = code_pair(typename Matrix::CodesType(), type, word, upper, k);
      } else {
        pair = code_pair(typename Matrix::CodesType(), type, word, k);
      }
      if constexpr (Matrix::kZeros) {
        const float zero = -scales[r].zero;
        pair = fma_rn(type, pair, one_pair(type), pack(type, zero, zero));
      }
    }
  }

  // The scales of the group of a chunk of a step, of the lane's two rows.
  template <int rounds>
  SINTER_DEVICE void load_scales(Group (&out)[2], int row, int chunk, int round) const {
    constexpr int begin = Matrix::layout().scales(rounds) - Matrix::layout().upper(rounds);
#pragma unroll
    for (int r = 0; r < 2; ++r)
      out[r] = Matrix::scale_at(scale_rows() + (row + 8 * r) * kScaleBytes + begin, chunk, round,
                                rounds);
  }

 private:
  SINTER_DEVICE unsigned char* panel(int i) const { return stage_ + i * rows * kPanelRow; }
  SINTER_DEVICE unsigned char* scale_rows() const { return stage_ + rows * kCodesHalfBytes; }
  // The offset in a panel of what begins `in_chunk` bytes after a chunk of a row.
  template <int rounds>
  static SINTER_DEVICE int panel_offset(int row, int chunk, int in_chunk) {
    if constexpr (rounds * kBits == 16) {
      return (row * kPanelRow + row % 8 * 16 + in_chunk) ^ chunk * 16;
    } else {
      const int bytes = chunk * kBits * rounds + in_chunk;
      return row * kPanelRow + (bytes / 16 ^ row % 8) * 16 + bytes % 16;
    }
  }

  unsigned char* stage_;
};

}  // namespace sinter
#endif
