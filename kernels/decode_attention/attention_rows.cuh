// Sizes of an decode_attention, and its rows as they come from memory.
#pragma once

#include "kernels/common/attention_operands.cuh"
#include "kernels/decode_attention/order.h"
#include "kernels/isa/ld_global.cuh"

namespace sinter {

// The constants in a kernel's text:
//   kHeads, kKvHeads, kTile (query heads of one block, all of one key head), kWidth, kValueWidth,
//   kSplits, kStreams, kAligned (chunks may be loaded whole), kScale, kSoftcap (0: none), kWindow
//   (0: none), kSink (absent: none), kEmptyZero (a token that sees no key gets zeros), Mask
//   (kernels/common/attention_operands.cuh)
template <typename Config>
struct AttentionSizes {
  static constexpr int tile = Config::kTile, width = Config::kValueWidth, splits = Config::kSplits;
  static constexpr int group = Config::kHeads / Config::kKvHeads, tiles = group / tile;
  static constexpr int lanes = attention_lanes(Config::kWidth, width), streams = Config::kStreams;
  static constexpr int threads = streams * lanes, warps = threads / 32;
  static constexpr int elements = tile * width;
  // Heads whose warps are added at a time.
  static constexpr int row = (width + 7) / 8 * 8, round = tile * row <= 256 ? tile : 1;
};

// A chunk of float32, as Packed<f16> is one of f16.
template <>
struct Packed<float> {
  unsigned word[8];
  SINTER_DEVICE float operator[](int e) const { return math::bits_float(word[e]); }
};
// Loads pass by the first-level cache: a row may have been read before it was written
// (DecodeAttention::start_early).
SINTER_DEVICE void load_words(unsigned* word, const void* p) {
  const uint4 words = ld_global_cg_v4(p);
  word[0] = words.x, word[1] = words.y, word[2] = words.z, word[3] = words.w;
}
SINTER_DEVICE unsigned load_bits(const float* p) { return ld_global_cg_b32(p); }
template <typename T>
SINTER_DEVICE unsigned load_bits(const T* p) {
  return ld_global_cg_b16(p);
}
// The first `count` elements at any address; zeros after them.
SINTER_DEVICE void load_elements(Packed<float>& out, const float* p, int count) {
#pragma unroll
  for (int e = 0; e < 8; ++e) out.word[e] = e < count ? load_bits(p + e) : 0;
}
template <typename T>
SINTER_DEVICE void load_elements(Packed<T>& out, const T* p, int count) {
  out = {};
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (e < count) out.word[e / 2] |= load_bits(p + e) << 16 * (e % 2);
}
template <typename T>
SINTER_DEVICE void fill_minus_zeros(Packed<T>& out) {
  for (unsigned& word : out.word) word = sizeof(T) == 4 ? 0x80000000u : 0x80008000u;
}

// Where the lane's chunk of 8 elements stands in a row of `width`; in lanes after the row's end
// the first chunk.
template <int width, typename T>
SINTER_DEVICE const T* chunk_of(const T* row, int lane) {
  return row + (8 * lane < width ? 8 * lane : 0);
}
// That chunk, zeros after the row's end. Loads stand where the text has them and have no
// condition: of a load under one the compiler makes a choice between the old registers and the new,
// which waits for the load.
template <bool aligned, int width, typename T>
SINTER_DEVICE void load_chunk_of(Packed<T>& out, const T* chunk, int lane) {
  if constexpr (aligned && width % 8 == 0) {
    load_words(out.word, chunk);
    if constexpr (sizeof(T) == 4) load_words(out.word + 4, chunk + 4);
  } else {
    load_elements(out, chunk, 8 * lane < width ? width - 8 * lane : width);
  }
}
// Numbers of a token's keys without a gap: a key of its range has the number of its row, and the
// keys of a sink have those right before.
template <typename Config>
class KeyNumbers {
  static constexpr unsigned sink = kSinkOf<Config>;

 public:
  SINTER_DEVICE KeyNumbers() {}
  SINTER_DEVICE explicit KeyNumbers(AttentionRange keys) {
    low_ = keys.low > 0 ? static_cast<unsigned>(keys.low) : 0;
    gap_ = keys.low > 0 ? low_ - sink : 0;
  }
  // The numbers of all keys.
  SINTER_DEVICE AttentionRange of_all(AttentionRange keys) const {
    if (sink == 0 || keys.low <= 0) return keys;
    return {keys.low - sink, keys.count + sink};
  }
  SINTER_DEVICE unsigned row(unsigned key) const {
    return sink > 0 && key < low_ ? key - gap_ : key;
  }
  // The number of a row, if the row is a key of the sink; else any.
  SINTER_DEVICE unsigned of_sink(unsigned row) const { return sink > 0 ? row + gap_ : row; }

 private:
  unsigned low_, gap_;  // the first row of the range, and the rows between the sink and it
};

// Where the rows of a key head of a sequence lie.
template <typename T>
struct CacheRows {
  const T* keys;
  long long keys_stride;
  const T* values;
  long long values_stride;
};

}  // namespace sinter
