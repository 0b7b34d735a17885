// Products of a packed matrix and several tokens of a 16-bit type on tensor cores.
//
// A unit is the codes of 4 lanes (ir/packed_codes.h) in all rounds of a step: in each round 32
// neighbouring columns, for which a tile of 16 rows takes two products. A lane loads its codes of a
// unit, 16 bytes a row, in one access, a unit ahead of their use.
//
//   | codes, scales from memory | pairs of 16-bit floats | mma: s1 of a round | fma(scale, s1, sum)
//   |
#pragma once

#include "kernels/common/code_pairs.cuh"
#include "kernels/common/packed_matrix.cuh"
#include "kernels/gemv/order.h"
#include "kernels/isa/mma.cuh"

#if SINTER_HAS_MMA
namespace sinter {

// The codes of a chunk less `less` as pairs of 16-bit floats; exact. Codes of 4 to 6 bits: elements
// j and j + 4, which one mask takes out of a word. Codes of 8 bits: elements 2j and 2j + 1.
template <int less, typename Codes, typename T, int words>
SINTER_DEVICE void code_pairs(Codes, const T* type, unsigned (&out)[4],
                              const unsigned (&word)[words]) {
  constexpr int distance = words == 1 ? 4 : 1, in_word = kCodeChunk / words;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int first = words == 1 ? j : 2 * j, second = first + distance;
    const auto value = [&](int k) {
      return math::sub(Codes::value(word[k / in_word], k % in_word), static_cast<float>(less));
    };
    out[j] = pack(type, value(first), value(second));
  }
}
// 1024 + n and 64 + n of f16.
template <int less>
SINTER_DEVICE void nibble_pairs(const f16* type, unsigned (&out)[4], unsigned word) {
  constexpr unsigned one = 0x3c003c00u, sixteenth = 0x2c002c00u, both = 0x00010001u;
  constexpr unsigned base = 0x64006400u, less_base = 0xe400e400u + less * both,
                     less_upper = 0xd400d400u + 16 * less * both;
#pragma unroll
  for (int j = 0; j < 4; j += 2) {
    const unsigned w = word >> 4 * j;
    out[j] = fma_rn(type, lop3_and_or(w, 0x000f000fu, base), one, less_base);
    out[j + 1] = fma_rn(type, lop3_and_or(w, 0x00f000f0u, base), sixteenth, less_upper);
  }
}
// 128 + n of bf16.
template <int less>
SINTER_DEVICE void nibble_pairs(const bf16* type, unsigned (&out)[4], unsigned word) {
  constexpr unsigned one = 0x3f803f80u, both = 0x00010001u;
  constexpr unsigned base = 0x43004300u, less_base = 0xc300c300u + less * both;
#pragma unroll
  for (int j = 0; j < 4; ++j)
    out[j] = fma_rn(type, lop3_and_or(word >> 4 * j, 0x000f000fu, base), one, less_base);
}
template <int less, typename T>
SINTER_DEVICE void code_pairs(codes::int4, const T* type, unsigned (&out)[4],
                              const unsigned (&word)[1]) {
  nibble_pairs<8 + less>(type, out, word[0]);
}
template <int less, typename T>
SINTER_DEVICE void code_pairs(codes::uint4, const T* type, unsigned (&out)[4],
                              const unsigned (&word)[1]) {
  nibble_pairs<less>(type, out, word[0]);
}
template <int less, typename T>
SINTER_DEVICE void code_pairs(codes::iq4nl, const T* type, unsigned (&out)[4],
                              const unsigned (&word)[1]) {
  static_assert(less == 0, "the values have both signs");
  const unsigned lower = iq4nl_entries(word[0]), upper = iq4nl_entries(word[0] >> 16);
#pragma unroll
  for (int j = 0; j < 4; ++j)  // elements j and j + 4, as bytes k and k + 1
    out[j] =
        code_pair(codes::int8(), type, prmt(lower, upper, j < 2 ? 0x5140u : 0x7362u), j % 2 * 2);
}
template <int upper_bits, int less, typename T>
SINTER_DEVICE void plane_pairs(const T* type, unsigned (&out)[4], const unsigned (&word)[2]) {
  const CodeBytes bytes = code_bytes<upper_bits>(word[0], word[1]);
  const unsigned base = nibble_base(type), less_base = (base | 0x80008000u) + less * 0x00010001u;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const unsigned own = (j % 2 == 0 ? bytes.even : bytes.odd) >> j / 2 * 8;
    out[j] = fma_rn(type, lop3_and_or(own, 0x00ff00ffu, base), one_pair(type), less_base);
  }
}
template <int less, typename T>
SINTER_DEVICE void code_pairs(codes::int5, const T* type, unsigned (&out)[4],
                              const unsigned (&word)[2]) {
  plane_pairs<1, 16 + less>(type, out, word);
}
template <int less, typename T>
SINTER_DEVICE void code_pairs(codes::uint5, const T* type, unsigned (&out)[4],
                              const unsigned (&word)[2]) {
  plane_pairs<1, less>(type, out, word);
}
template <int less, typename T>
SINTER_DEVICE void code_pairs(codes::int6, const T* type, unsigned (&out)[4],
                              const unsigned (&word)[2]) {
  plane_pairs<2, 32 + less>(type, out, word);
}
#if SINTER_HAS_FP8_CONVERSION
template <int less, typename T>
SINTER_DEVICE void code_pairs(codes::e4m3, const T* type, unsigned (&out)[4],
                              const unsigned (&word)[2]) {
#pragma unroll
  for (int j = 0; j < 4; ++j)
    out[j] = f16_pair(type, cvt_rn_f16x2_e4m3x2(word[j / 2] >> 16 * (j % 2)));
}
#endif
// The operand's elements in the order of the pairs.
template <int words>
SINTER_DEVICE void operand_pairs(unsigned (&out)[4], const uint4& x) {
  if constexpr (words == 1) {
    out[0] = prmt(x.x, x.z, 0x5410u), out[1] = prmt(x.x, x.z, 0x7632u);
    out[2] = prmt(x.y, x.w, 0x5410u), out[3] = prmt(x.y, x.w, 0x7632u);
  } else {
    out[0] = x.x, out[1] = x.y, out[2] = x.z, out[3] = x.w;
  }
}
SINTER_DEVICE unsigned ones(const f16*) { return 0x3c003c00u; }
SINTER_DEVICE unsigned ones(const bf16*) { return 0x3f803f80u; }

// The products of a warp with `tiles` tiles of 16 rows; lane 4 g + q has the rows g and g + 8 of a
// tile.
template <typename Matrix, typename T, int tiles>
class CodeTiles {
  static constexpr int kRounds = Matrix::layout().step_rounds();
  static constexpr int kStepUnits = kCodeLanes / 4;
  // Groups of 16 columns: two in the columns of a round of a unit.
  static constexpr int kHalves = Matrix::layout().group == 16 ? 2 : 1;
  static constexpr bool kOperandSums = Matrix::kZeros || Matrix::kMinima;
  static constexpr int kRowSteps =
      (Matrix::kLength + Matrix::kStepLength - 1) / Matrix::kStepLength;

 public:
  static constexpr int kUnits = kRowSteps * kStepUnits;  // of a row

  // The loads of a lane for a unit.
  struct Unit {
    typename Matrix::StepCodes codes[tiles][2];
    typename Matrix::StepGroups scales[tiles][2][kHalves];
  };

  // `at`: the addresses of the tiles' rows.
  static SINTER_DEVICE void load(Unit& unit, const unsigned char* const (&at)[tiles][2], int index,
                                 int lane) {
    const int step = index / kStepUnits, first = index % kStepUnits * 4, own = first + lane % 4;
    constexpr int whole = Matrix::kLength / Matrix::kStepLength;
    constexpr int rounds = (Matrix::kLength % Matrix::kStepLength + kCodeRound - 1) / kCodeRound;
    const bool is_whole = rounds == 0 || step < whole;
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const unsigned char* from = at[tile][r] + step * Matrix::kStepBytes;
        if (is_whole)
          unit.codes[tile][r].load(from, own);
        else
          unit.codes[tile][r].load(from, own, rounds);
        if constexpr (!Matrix::kRowScale)
#pragma unroll
          for (int half = 0; half < kHalves; ++half) {
            if (is_whole)
              unit.scales[tile][r][half].load(from, first + 2 * half);
            else
              unit.scales[tile][r][half].load(from, first + 2 * half, rounds);
          }
      }
  }

  // Adds the products of unit `index`. `x`: the row of token lane / 4.
  SINTER_DEVICE void add(const Unit& unit, const T* x, int index, int lane) {
    const int k =
        index / kStepUnits * Matrix::kStepLength + (index % kStepUnits * 4 + lane % 4) * kCodeChunk;
    uint4 chunk[kRounds];
#pragma unroll
    for (int round = 0; round < kRounds; ++round)
      chunk[round] = k + round * kCodeRound < Matrix::kLength
                         ? *reinterpret_cast<const uint4*>(x + k + round * kCodeRound)
                         : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      unsigned operand[4];
      operand_pairs<Matrix::kLowWords>(operand, chunk[round]);
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        unsigned own[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) own[j] = kHalves == 1 || lane % 4 / 2 == half ? operand[j] : 0;
        float of_operand[4] = {};
        if constexpr (kOperandSums) {
          const unsigned one = ones(static_cast<const T*>(nullptr));
          float(&sum)[4] = Matrix::kRowScale ? operand_ : of_operand;
          mma_m16n8k16(sum, x, one, one, one, one, own[0], own[1]);
          mma_m16n8k16(sum, x, one, one, one, one, own[2], own[3]);
        }
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
          unsigned code[2][4];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            unsigned word[Matrix::kWords];
            unit.codes[tile][r].of_round(word, round);
            code_pairs<Matrix::kBias>(typename Matrix::CodesType(), x, code[r], word);
          }
          float products[4] = {};
          float(&sum)[4] = Matrix::kRowScale ? sums[tile] : products;
          mma_m16n8k16(sum, x, code[0][0], code[1][0], code[0][1], code[1][1], own[0], own[1]);
          mma_m16n8k16(sum, x, code[0][2], code[1][2], code[0][3], code[1][3], own[2], own[3]);
          if constexpr (!Matrix::kRowScale)
#pragma unroll
            for (int r = 0; r < 2; ++r)
              scale(sums[tile], products, of_operand, unit.scales[tile][r][half].of_round(round),
                    r);
        }
      }
    }
  }
  // Scales the sums of rows that have one scale.
  SINTER_DEVICE void scale_rows(int tile, int r, const typename Matrix::Group& group) {
    float scaled[4] = {};
    scale(scaled, sums[tile], operand_, group, r);
    sums[tile][2 * r] = scaled[2 * r];
    sums[tile][2 * r + 1] = scaled[2 * r + 1];
  }

  float sums[tiles][4] = {};

 private:
  // The two sums of row `r` in a fragment.
  static SINTER_DEVICE void scale(float (&sums)[4], const float (&products)[4],
                                  const float (&of_operand)[4], const typename Matrix::Group& group,
                                  int r) {
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      float s1 = products[2 * r + t];
      if constexpr (Matrix::kZeros)
        s1 = math::fma(math::sub(static_cast<float>(Matrix::kBias), group.zero), of_operand[t], s1);
      float& sum = sums[2 * r + t];
      sum = math::fma(group.scale, s1, sum);
      if constexpr (Matrix::kMinima) sum = math::fma(-group.minimum, of_operand[t], sum);
    }
  }

  float operand_[4] = {};  // sums of the operand, where a row has one zero or minimum
};

}  // namespace sinter
#endif
