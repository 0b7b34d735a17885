// Fragments of tensor cores: parts of a tile in shared memory for ldmatrix, and rows of a result in
// chunks of 8 elements.
#pragma once

#include "kernels/common/vector.cuh"
#include "kernels/isa/mma.cuh"
#include "kernels/isa/movmatrix.cuh"
#include "kernels/tile/layout.h"

namespace sinter {

// The address that a lane gives to ldmatrix for a 16 by 16 part of a tile whose first matrix is
// followed by the next 8 rows, or by the next 8 columns.
template <int rows, int padded>
SINTER_DEVICE const void* part_rows_first(const unsigned char* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return tile + tile_offset(rows, padded, row + lane % 16, column / 8 + lane / 16);
}
template <int rows, int padded>
SINTER_DEVICE const void* part_columns_first(const unsigned char* tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return tile +
         tile_offset(rows, padded, row + lane / 16 * 8 + lane % 8, column / 8 + lane / 8 % 2);
}

// sums += a b for 16 rows and 16 columns, from column `first` of the sums on.
template <typename T, int count>
SINTER_DEVICE void mma_m16n16k16(float (&sums)[count], int first, const unsigned* a,
                                 const unsigned (&b)[4]) {
  float(&left)[4] = *reinterpret_cast<float(*)[4]>(sums + first / 2);
  float(&right)[4] = *reinterpret_cast<float(*)[4]>(sums + first / 2 + 4);
  mma_m16n8k16(left, static_cast<const T*>(nullptr), a[0], a[1], a[2], a[3], b[0], b[1]);
  mma_m16n8k16(right, static_cast<const T*>(nullptr), a[0], a[1], a[2], a[3], b[2], b[3]);
}

// The sums of `count` columns, from column `first` on.
template <int first, int count, int all>
SINTER_DEVICE float (&sum_columns(float (&sums)[all]))[count / 2] {
  return *reinterpret_cast<float(*)[count / 2]>(sums + first / 2);
}

// Lanes that differ in `bit` swap the second word of the lower one and the first of the other.
template <int bit>
SINTER_DEVICE void exchange_words(unsigned& first, unsigned& second, int lane) {
  const bool upper = (lane & bit) != 0;
  const unsigned other = __shfl_xor_sync(0xffffffffu, upper ? first : second, bit);
  if (upper)
    first = other;
  else
    second = other;
}

// Transposes four words of four neighbouring lanes: word i of lane j becomes word j of lane i.
SINTER_DEVICE void transpose_words(unsigned (&words)[4], int lane) {
  exchange_words<1>(words[0], words[1], lane);
  exchange_words<1>(words[2], words[3], lane);
  exchange_words<2>(words[0], words[2], lane);
  exchange_words<2>(words[1], words[3], lane);
}

using Chunk = float[8];

// A lane has two elements, `pairs[i]`, of each of four chunks; it gets all of chunk `lane` % 4,
// rounded to T.
template <typename T>
SINTER_DEVICE void gather_chunk(uint4& chunk, const T* p, const float (&pairs)[4][2], int lane) {
  unsigned words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = pack(p, pairs[i][0], pairs[i][1]);
  transpose_words(words, lane);
  chunk = make_uint4(words[0], words[1], words[2], words[3]);
}
template <typename T>
SINTER_DEVICE void gather_chunk(Chunk& values, const T* p, const float (&pairs)[4][2], int lane) {
  uint4 chunk;
  gather_chunk(chunk, p, pairs, lane);
  widen(values, p, chunk);
}
SINTER_DEVICE void gather_chunk(Chunk& values, const float*, const float (&pairs)[4][2], int lane) {
#pragma unroll
  for (int element = 0; element < 2; ++element) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = math::float_bits(pairs[i][element]);
    transpose_words(words, lane);
#pragma unroll
    for (int i = 0; i < 4; ++i) values[2 * i + element] = math::bits_float(words[i]);
  }
}

// The turns of take_chunks() for a row of `chunks` chunks in units of `units`: in each a lane takes
// one unit of one of its two rows.
SINTER_DEVICE constexpr int turns_of_row(int chunks, int units) {
  return (chunks + 4 * units - 1) / (4 * units);
}

// In a turn a lane takes a unit of its first row, or for half 1 of the row 8 further. Four lanes
// share a row, whose chunks start at chunk `first` of the sums; each lane takes every fourth unit.
// Elements beyond the sums are 0.
template <typename T, int units, typename Gathered, int count>
SINTER_DEVICE void gather_units(Gathered (&values)[units], const float (&sums)[count], int first,
                                int half, int lane) {
#pragma unroll
  for (int unit = 0; unit < units; ++unit) {
    float pairs[4][2] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = 4 * (first + units * i + unit) + 2 * half;
      if (at < count) pairs[i][0] = sums[at], pairs[i][1] = sums[at + 1];
    }
    gather_chunk(values[unit], static_cast<const T*>(nullptr), pairs, lane);
  }
}

// Rounds the sums of a lane's two rows to T and calls take(turn, half, chunk, values) for `units`
// chunks of 8 elements, of which `chunk` is the first: all of half 0, then all of half 1. All lanes
// are called in every turn, also where `chunk` is behind the row's `chunks`. Gathered: Chunk, or
// uint4 for the 16-bit elements as they lie in memory.
template <typename T, int chunks, int units = 1, typename Gathered = Chunk, int count,
          typename Take>
SINTER_DEVICE void take_chunks_in_turns(const float (&sums)[count], Take take) {
  static_assert(chunks % units == 0, "a row has whole units");
  constexpr int turns = turns_of_row(chunks, units);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int turn = 0; turn < turns; ++turn) {
      const int first = 4 * units * turn;
      Gathered values[units];
      gather_units<T>(values, sums, first, half, lane);
      take(half * turns + turn, half, first + units * (lane % 4), values);
    }
  }
}
// The same by a loop in which the text of take() stands once for each half: both halves of a turn,
// then both of the next. A register has no index at run time, so the next turn's sums are moved to
// where the taken sums were; all sums are lost.
template <typename T, int chunks, int units = 1, int count, typename Take>
SINTER_DEVICE void take_chunks_in_a_loop(float (&sums)[count], Take take) {
  static_assert(chunks % units == 0, "a row has whole units");
  static_assert(count % (16 * units) == 0, "whole turns");
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
  for (int turn = 0; turn < turns_of_row(chunks, units); ++turn) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Chunk values[units];
      gather_units<T>(values, sums, 0, half, lane);
      take(2 * turn + half, half, units * (4 * turn + lane % 4), values);
    }
#pragma unroll
    for (int i = 16 * units; i < count; ++i) sums[i - 16 * units] = sums[i];
  }
}
// Calls take(half, chunk, values) for the chunks that a lane's rows have.
template <typename T, int chunks, int units = 1, typename Gathered = Chunk, int count,
          typename Take>
SINTER_DEVICE void take_chunks(const float (&sums)[count], Take take) {
  take_chunks_in_turns<T, chunks, units, Gathered>(
      sums, [&](int, int half, int chunk, const Gathered(&values)[units]) {
        if (chunk < chunks) take(half, chunk, values);
      });
}

// Rounds a warp's sums of 16 rows and 16 columns to T and transposes them. Lane 4 g + q gets 8
// elements of column g, or for q >= 2 of column g + 8: rows 0 .. 7, or for odd q rows 8 .. 15.
template <typename T>
SINTER_DEVICE void transpose_chunk(Chunk& values, const T* p, const float (&sums)[8], int lane) {
  unsigned words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = movmatrix_trans(pack(p, sums[2 * i], sums[2 * i + 1]));
  transpose_words(words, lane);
  widen(values, p, make_uint4(words[0], words[1], words[2], words[3]));
}
SINTER_DEVICE void transpose_chunk(Chunk& values, const float* p, const float (&sums)[8],
                                   int lane) {
  float pairs[4][2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned first = math::float_bits(sums[2 * i]);
    const unsigned second = math::float_bits(sums[2 * i + 1]);
    const unsigned low = movmatrix_trans((first & 0xffffu) | second << 16);
    const unsigned high = movmatrix_trans(first >> 16 | (second & 0xffff0000u));
    pairs[i][0] = math::bits_float((low & 0xffffu) | high << 16);
    pairs[i][1] = math::bits_float(low >> 16 | (high & 0xffff0000u));
  }
  gather_chunk(values, p, pairs, lane);
}

}  // namespace sinter
