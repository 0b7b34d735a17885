// Element types in memory, and chunks of 8 elements moved in accesses of 16 bytes.
//
// A kernel computes in float, int, long long and bool; memory holds float, f16, bf16, int, long
// long and one byte per truth value. load and store convert; a store rounds to nearest, as a cast
// does. Chunks are aligned to their size in memory, at most 16 bytes, and loaded from memory that
// the kernel does not write. Loads are plain: where a kernel's inputs are __restrict__, the
// compiler knows that they may pass by what keeps caches coherent and be moved ahead; elsewhere
// they must not (launch.cuh).
#pragma once

#include "ir/scalar_math.h"
#include "kernels/isa/st_global.cuh"

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
SINTER_DEVICE long long load(const long long* p) { return *p; }
SINTER_DEVICE bool load(const i1* p) { return *p != 0; }

SINTER_DEVICE void store(float* p, float x) { *p = x; }
SINTER_DEVICE void store(f16* p, float x) { p->bits = math::float_to_f16(x); }
SINTER_DEVICE void store(bf16* p, float x) { p->bits = math::float_to_bf16(x); }
SINTER_DEVICE void store(int* p, int x) { *p = x; }
SINTER_DEVICE void store(long long* p, long long x) { *p = x; }
SINTER_DEVICE void store(i1* p, bool x) { *p = x ? 1 : 0; }

// Two elements as they lie in memory, rounded in one instruction where there is one.
SINTER_DEVICE unsigned pack(const f16*, float low, float high) {
#if SINTER_HAS_BF16_ARITHMETIC
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  return math::float_to_f16(low) | static_cast<unsigned>(math::float_to_f16(high)) << 16;
#endif
}
SINTER_DEVICE unsigned pack(const bf16*, float low, float high) {
#if SINTER_HAS_BF16_ARITHMETIC
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  return math::float_to_bf16(low) | static_cast<unsigned>(math::float_to_bf16(high)) << 16;
#endif
}

// Conversions of pairs run at a multiple of the rate of single ones.
SINTER_DEVICE float round_f16(float x) {
  return math::f16_to_float(
      static_cast<unsigned short>(pack(static_cast<const f16*>(nullptr), x, 0.0f)));
}
SINTER_DEVICE float round_bf16(float x) {
  return math::bits_float(pack(static_cast<const bf16*>(nullptr), x, 0.0f) << 16);
}

// A place in an axis where it may lie before or behind it.
template <typename Index>
SINTER_DEVICE Index at_least_zero(Index place) {
  return place > 0 ? place : 0;
}
template <typename Index, typename Last>
SINTER_DEVICE Index at_most(Index place, Last last) {
  return place < last ? place : static_cast<Index>(last);
}

SINTER_DEVICE float low_half(const f16*, unsigned word) {
  return math::f16_to_float(static_cast<unsigned short>(word));
}
SINTER_DEVICE float low_half(const bf16*, unsigned word) {
  return math::bf16_to_float(static_cast<unsigned short>(word));
}
SINTER_DEVICE float from_word(const float*, unsigned word) { return math::bits_float(word); }
SINTER_DEVICE int from_word(const int*, unsigned word) { return static_cast<int>(word); }
SINTER_DEVICE unsigned to_word(float x) { return math::float_bits(x); }
SINTER_DEVICE unsigned to_word(int x) { return static_cast<unsigned>(x); }

// Two bytes an element: 8 in one access. `p` tells the type.
template <typename T>
SINTER_DEVICE void widen(float (&out)[8], const T* p, uint4 words) {
  const unsigned word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    out[2 * k] = low_half(p, word[k] & 0xffffu);
    out[2 * k + 1] = low_half(p, word[k] >> 16);
  }
}
template <typename T>
SINTER_DEVICE uint4 narrow(const T* p, const float (&in)[8]) {
  unsigned word[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) word[k] = pack(p, in[2 * k], in[2 * k + 1]);
  return make_uint4(word[0], word[1], word[2], word[3]);
}
template <typename T>
SINTER_DEVICE void load_narrow(float (&out)[8], const T* p) {
  widen(out, p, *reinterpret_cast<const uint4*>(p));
}
template <typename T>
SINTER_DEVICE void store_narrow(T* p, const float (&in)[8]) {
  st_global_v4(p, narrow(p, in));
}
SINTER_DEVICE void load_chunk(float (&out)[8], const f16* p) { load_narrow(out, p); }
SINTER_DEVICE void load_chunk(float (&out)[8], const bf16* p) { load_narrow(out, p); }
SINTER_DEVICE void store_chunk(f16* p, const float (&in)[8]) { store_narrow(p, in); }
SINTER_DEVICE void store_chunk(bf16* p, const float (&in)[8]) { store_narrow(p, in); }

// A chunk of a two-byte type as it lies in memory: half the registers of its floats.
template <typename T>
struct Packed {
  unsigned word[4];
  SINTER_DEVICE float operator[](int e) const {
    const unsigned pair = word[e / 2];
    return low_half(static_cast<const T*>(nullptr), e % 2 == 0 ? pair & 0xffffu : pair >> 16);
  }
};
template <typename T>
SINTER_DEVICE void load_chunk(Packed<T>& out, const T* p) {
  const uint4 words = *reinterpret_cast<const uint4*>(p);
  out = {{words.x, words.y, words.z, words.w}};
}
// Elements p and p + 1, rounded.
template <typename T>
SINTER_DEVICE void pack_pair(Packed<T>& out, const float (&in)[8], int p) {
  out.word[p / 2] = pack(static_cast<const T*>(nullptr), in[p], in[p + 1]);
}
// The floats are values of T.
template <typename T>
SINTER_DEVICE void pack_chunk(Packed<T>& out, const float (&in)[8]) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
    out.word[k] = pack(static_cast<const T*>(nullptr), in[2 * k], in[2 * k + 1]);
}
template <typename T>
SINTER_DEVICE void store_chunk(T* p, const Packed<T>& in) {
  st_global_v4(p, make_uint4(in.word[0], in.word[1], in.word[2], in.word[3]));
}

// Four bytes an element: 4 in one access.
template <typename T>
SINTER_DEVICE void load_chunk(T (&out)[8], const T* p) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const uint4 words = reinterpret_cast<const uint4*>(p)[k];
    out[4 * k] = from_word(p, words.x);
    out[4 * k + 1] = from_word(p, words.y);
    out[4 * k + 2] = from_word(p, words.z);
    out[4 * k + 3] = from_word(p, words.w);
  }
}
template <typename T>
SINTER_DEVICE void store_chunk(T* p, const T (&in)[8]) {
#pragma unroll
  for (int k = 0; k < 2; ++k)
    st_global_v4(p + 4 * k, make_uint4(to_word(in[4 * k]), to_word(in[4 * k + 1]),
                                       to_word(in[4 * k + 2]), to_word(in[4 * k + 3])));
}

// Eight bytes an element: 2 in one access.
SINTER_DEVICE void load_chunk(long long (&out)[8], const long long* p) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const uint4 words = reinterpret_cast<const uint4*>(p)[k];
    out[2 * k] = static_cast<long long>(static_cast<math::u64>(words.y) << 32 | words.x);
    out[2 * k + 1] = static_cast<long long>(static_cast<math::u64>(words.w) << 32 | words.z);
  }
}
SINTER_DEVICE void store_chunk(long long* p, const long long (&in)[8]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const math::u64 low = static_cast<math::u64>(in[2 * k]);
    const math::u64 high = static_cast<math::u64>(in[2 * k + 1]);
    st_global_v4(p + 2 * k,
                 make_uint4(static_cast<unsigned>(low), static_cast<unsigned>(low >> 32),
                            static_cast<unsigned>(high), static_cast<unsigned>(high >> 32)));
  }
}

// Packed values, stored as another type.
template <typename To, typename T>
SINTER_DEVICE void store_chunk(To* p, const Packed<T>& in) {
  float wide[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) wide[k] = in[k];
  store_chunk(p, wide);
}

// One byte an element.
SINTER_DEVICE void load_chunk(bool (&out)[8], const i1* p) {
  const uint2 words = *reinterpret_cast<const uint2*>(p);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    out[k] = (words.x >> 8 * k & 0xffu) != 0;
    out[k + 4] = (words.y >> 8 * k & 0xffu) != 0;
  }
}
SINTER_DEVICE void store_chunk(i1* p, const bool (&in)[8]) {
  uint2 words = make_uint2(0, 0);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    words.x |= (in[k] ? 1u : 0u) << 8 * k;
    words.y |= (in[k + 4] ? 1u : 0u) << 8 * k;
  }
  st_global_v2(p, words);
}

// The last chunk of a row may have fewer elements; the others are not touched, and read as
// zeros.
template <typename T, typename Element>
SINTER_DEVICE void load_chunk(Element (&out)[8], const T* p, int valid) {
  if (valid == 8) return load_chunk(out, p);
#pragma unroll
  for (int k = 0; k < 8; ++k) out[k] = k < valid ? load(p + k) : Element(0);
}
template <typename T>
SINTER_DEVICE void load_chunk(Packed<T>& out, const T* p, int valid) {
  if (valid == 8) return load_chunk(out, p);
  out = {{0, 0, 0, 0}};
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (k < valid) out.word[k / 2] |= static_cast<unsigned>(p[k].bits) << 16 * (k % 2);
}
template <typename T, typename Element>
SINTER_DEVICE void store_chunk(T* p, const Packed<Element>& in, int valid) {
  if (valid == 8) return store_chunk(p, in);
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (k < valid) store(p + k, in[k]);
}
template <typename T, typename Element>
SINTER_DEVICE void store_chunk(T* p, const Element (&in)[8], int valid) {
  if (valid == 8) return store_chunk(p, in);
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (k < valid) store(p + k, in[k]);
}

}  // namespace sinter
