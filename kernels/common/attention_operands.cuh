// Operands of attention in memory: keys, values, the seed of a dropout, and the mask, which has for
// each sequence, query head, token and key whether the key is seen, or a number that is added to
// its score.
#pragma once

#include "ir/attention_dropout.h"
#include "kernels/common/vector.cuh"

namespace sinter {

// Rows of keys or values: the first element, and elements to the next sequence, row and head.
template <typename T>
struct AttentionRows {
  const T* from;
  long long sequence_stride, row_stride, head_stride;

  // Row 0 of a head.
  SINTER_DEVICE const T* row0(long long sequence, int head) const {
    return from + sequence * sequence_stride + head * head_stride;
  }
};

// How the tokens of a sequence have masks.
enum class MaskRows : unsigned char {
  shared,         // one for all of them: the step from token to token is 0
  own,            // each its own
  own_in_chunks,  // each its own, in whole chunks of 16 neighbouring bytes at multiples of 16
};

// No key is hidden by a mask.
struct NoMask {
  static constexpr bool kIsThere = false, kAdds = false, kHasTiles = false;
  static constexpr MaskRows kRows = MaskRows::own;
  static constexpr int kDropout = 0;
  struct Row {};
  SINTER_DEVICE Row row(long long, int, long long) const { return {}; }
};

// A mask in memory, with the elements to the next sequence, head, token and key; 0 where it
// repeats. `adds`: it has numbers, and not truth values.
template <typename T, bool adds, MaskRows rows>
struct MaskInMemory {
  static constexpr bool kIsThere = true, kAdds = adds, kHasTiles = false;
  static constexpr MaskRows kRows = rows;
  static constexpr int kDropout = 0;
  const T* from;
  long long sequence_stride, head_stride, token_stride;
  int key_stride;

  // The mask of a token's head: a truth value or a number for each key.
  struct Row {
    const T* from;
    int key_stride;
    SINTER_DEVICE auto operator[](int key) const {
      return load(from + static_cast<long long>(key) * key_stride);
    }
  };
  SINTER_DEVICE Row row(long long sequence, int head, long long token) const {
    const T* const of_head = from + sequence * sequence_stride + head * head_stride;
    return {rows == MaskRows::shared ? of_head : of_head + token * token_stride, key_stride};
  }
};

// A mask and, for each tile of tokens and keys, whether it shows a key: the result of mask_tiles,
// with its steps from tile to tile.
template <typename WholeMask>
struct MaskWithTiles : WholeMask {
  static constexpr bool kHasTiles = true;
  MaskInMemory<i1, false, MaskRows::own> tiles;
};

// A mask, or none, and a dropout with this threshold (attention_dropout.h).
template <typename WholeMask, int threshold>
struct MaskWithDropout : WholeMask {
  static constexpr int kDropout = threshold;
  const int* seed;

  // The bits of a token's head that all keys share; `head`: of all sequences.
  SINTER_DEVICE unsigned dropout_row(long long head, long long token) const {
    return sinter::dropout_row(*seed, static_cast<unsigned>(head), static_cast<unsigned>(token));
  }
};

}  // namespace sinter
