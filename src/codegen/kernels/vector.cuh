// Element types in memory, and chunks of 8 elements moved in accesses of 16 bytes.
//
// A kernel computes in float, int and bool; memory holds float, f16, bf16, int and one byte per
// truth value. load and store convert; what is stored has been rounded before. Chunks are aligned
// to their size in memory, at most 16 bytes.
#pragma once

#include "sinter/scalar_math.h"

namespace sinter {

struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};
using i1 = unsigned char;

SINTER_DEVICE float load(const float* p) { return *p; }
SINTER_DEVICE float load(const f16* p) { return math::f16_to_float(p->bits); }
SINTER_DEVICE float load(const bf16* p) { return math::bf16_to_float(p->bits); }
SINTER_DEVICE int load(const int* p) { return *p; }
SINTER_DEVICE bool load(const i1* p) { return *p != 0; }

SINTER_DEVICE void store(float* p, float x) { *p = x; }
SINTER_DEVICE void store(f16* p, float x) { p->bits = math::float_to_f16(x); }
SINTER_DEVICE void store(bf16* p, float x) { p->bits = math::float_to_bf16(x); }
SINTER_DEVICE void store(int* p, int x) { *p = x; }
SINTER_DEVICE void store(i1* p, bool x) { *p = x ? 1 : 0; }

SINTER_DEVICE float round_f16(float x) { return math::f16_to_float(math::float_to_f16(x)); }
SINTER_DEVICE float round_bf16(float x) { return math::bf16_to_float(math::float_to_bf16(x)); }

// One access: 16 bytes, or the 8 bytes of 8 truth values.
struct alignas(16) Words4 {
  unsigned x, y, z, w;
};
struct alignas(8) Words2 {
  unsigned x, y;
};

SINTER_DEVICE float low_half(const f16*, unsigned word) {
  return math::f16_to_float(static_cast<unsigned short>(word));
}
SINTER_DEVICE float low_half(const bf16*, unsigned word) {
  return math::bf16_to_float(static_cast<unsigned short>(word));
}
SINTER_DEVICE unsigned half_bits(const f16*, float x) { return math::float_to_f16(x); }
SINTER_DEVICE unsigned half_bits(const bf16*, float x) { return math::float_to_bf16(x); }

SINTER_DEVICE float from_word(const float*, unsigned word) { return math::bits_float(word); }
SINTER_DEVICE int from_word(const int*, unsigned word) { return static_cast<int>(word); }
SINTER_DEVICE unsigned to_word(float x) { return math::float_bits(x); }
SINTER_DEVICE unsigned to_word(int x) { return static_cast<unsigned>(x); }

// Two bytes an element.
template <typename T>
SINTER_DEVICE void load_chunk(float (&out)[8], const T* p) {
  const Words4 words = *reinterpret_cast<const Words4*>(p);
  const unsigned word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    out[2 * k] = low_half(p, word[k] & 0xffffu);
    out[2 * k + 1] = low_half(p, word[k] >> 16);
  }
}
template <typename T>
SINTER_DEVICE void store_chunk(T* p, const float (&in)[8]) {
  unsigned word[4];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    word[k] = half_bits(p, in[2 * k]) | half_bits(p, in[2 * k + 1]) << 16;
  *reinterpret_cast<Words4*>(p) = Words4{word[0], word[1], word[2], word[3]};
}

// Four bytes an element.
template <typename T, typename Element>
SINTER_DEVICE void load_two_words4(Element (&out)[8], const T* p) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const Words4 words = reinterpret_cast<const Words4*>(p)[k];
    out[4 * k] = from_word(p, words.x);
    out[4 * k + 1] = from_word(p, words.y);
    out[4 * k + 2] = from_word(p, words.z);
    out[4 * k + 3] = from_word(p, words.w);
  }
}
template <typename T, typename Element>
SINTER_DEVICE void store_two_words4(T* p, const Element (&in)[8]) {
#pragma unroll
  for (int k = 0; k < 2; ++k)
    reinterpret_cast<Words4*>(p)[k] = Words4{to_word(in[4 * k]), to_word(in[4 * k + 1]),
                                             to_word(in[4 * k + 2]), to_word(in[4 * k + 3])};
}
SINTER_DEVICE void load_chunk(float (&out)[8], const float* p) { load_two_words4(out, p); }
SINTER_DEVICE void load_chunk(int (&out)[8], const int* p) { load_two_words4(out, p); }
SINTER_DEVICE void store_chunk(float* p, const float (&in)[8]) { store_two_words4(p, in); }
SINTER_DEVICE void store_chunk(int* p, const int (&in)[8]) { store_two_words4(p, in); }

// One byte an element.
SINTER_DEVICE void load_chunk(bool (&out)[8], const i1* p) {
  const Words2 words = *reinterpret_cast<const Words2*>(p);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    out[k] = (words.x >> 8 * k & 0xffu) != 0;
    out[k + 4] = (words.y >> 8 * k & 0xffu) != 0;
  }
}
SINTER_DEVICE void store_chunk(i1* p, const bool (&in)[8]) {
  Words2 words{0, 0};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    words.x |= (in[k] ? 1u : 0u) << 8 * k;
    words.y |= (in[k + 4] ? 1u : 0u) << 8 * k;
  }
  *reinterpret_cast<Words2*>(p) = words;
}

// The last chunk of a row may have fewer than 8 elements; the others are not touched, and read as
// zeros.
template <typename T, typename Element>
SINTER_DEVICE void load_chunk(Element (&out)[8], const T* p, int valid) {
  if (valid == 8) return load_chunk(out, p);
#pragma unroll
  for (int k = 0; k < 8; ++k) out[k] = k < valid ? load(p + k) : Element(0);
}
template <typename T, typename Element>
SINTER_DEVICE void store_chunk(T* p, const Element (&in)[8], int valid) {
  if (valid == 8) return store_chunk(p, in);
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (k < valid) store(p + k, in[k]);
}

}  // namespace sinter
