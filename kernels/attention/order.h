// Attention of many tokens on tensor cores: the order of operations of tiled_attention, the same
// text on host and device.
//
// The rows of the caches are cut into tiles of attention_key_tile rows, at multiples of that
// number. A token's head walks the tiles in which it sees keys, upwards: those of a sink, then
// those of its range, a tile of both once (the online softmax of Milakov and Gimelshein 2018, in
// the form of FlashAttention 2). It keeps the largest logit m, the sums of weights l and per
// element the weighted sum of values. For each tile:
//
//   1. The dot product q·k of each key in float32, a step of 16 elements after the other. Tensor
//      cores add the products of a step to the sum in an order of their own; the host, and the CPU
//      of the tests, add them in float64, elements ascending, and round once a step.
//   2. attention_logit of each dot product and what the mask has for the key; -inf for keys of the
//      tile that the token does not see.
//   3. m grows to the tile's largest logit. What was summed is multiplied by
//      attention_exp2((old m - new m) * factor).
//   4. A key's weight is attention_weight: 2^(logit * factor - m * factor), a fused multiply-add;
//      with a mask of numbers 2^((logit - m) * factor), as the product with the factor may be
//      infinite where the mask has the lowest number of its type. Weights
//      are added to eight sums l, key j of the tile to sum j mod 8, upwards.
//   5. The weights, rounded to the type of the values, are multiplied with the values as in 1, a
//      step of 16 keys after the other, and added to the weighted sums.
//
// At the end l = ((l0 + l1) + (l2 + l3)) + ((l4 + l5) + (l6 + l7)), and an element is its weighted
// sum times attention_inverse(l). Until a token sees a key, 0 stands for m in 3 and 4, where m is
// -inf.
//
// A tile in which m does not grow multiplies nothing in 3. One in which a token sees no key changes
// nothing: m stays, weights are 0. So a token's bits depend on its own keys alone and not on the
// tokens that share a block with it. (A value that is infinite or NaN, in a tile with a key that
// the token sees, may make NaN of its element: its weight 0 is multiplied with it.)
//
// With a summary of the mask (mask_tiles) a token leaves out the tiles of keys that it says are
// hidden from all tokens of a tile of kAttentionTokenTile tokens.
#pragma once

#include "kernels/common/visible_keys.cuh"

namespace sinter {

/// Tokens of a tile of a mask that is looked at as a whole: a multiple of those of a block.
constexpr int kAttentionTokenTile = 128;
/// Keys of a tile, for heads of these widths: as many as leave registers for the sums of a row.
SINTER_DEVICE constexpr int attention_key_tile(int width, int value_width) {
  return width <= 128 && value_width <= 128 ? 128 : 64;
}

/// Scores are compared before they are multiplied by the factor. `softcap` 0: none.
SINTER_DEVICE float attention_logit(float dot, float scale, float softcap) {
  if (softcap == 0.0f) return scale < 0.0f ? -dot : dot;
  return math::tanh(math::div(math::mul(dot, scale), softcap));
}
/// With a mask of truth values.
SINTER_DEVICE float attention_logit(float dot, float scale, float softcap, bool seen) {
  return seen ? attention_logit(dot, scale, softcap) : -math::infinity();
}
/// With a mask of numbers, one of which is added to the score: the logit is the score itself.
SINTER_DEVICE float attention_logit(float dot, float scale, float softcap, float added) {
  if (softcap == 0.0f) return math::fma(dot, scale, added);
  return math::fma(math::tanh(math::div(math::mul(dot, scale), softcap)), softcap, added);
}
/// A positive number: the power of two that a logit of 1 stands for. `adds_mask`: the mask has
/// numbers.
SINTER_DEVICE constexpr float attention_factor(double scale, double softcap, bool adds_mask) {
  const double positive = scale < 0 ? -scale : scale;
  const double score = adds_mask ? 1 : softcap == 0 ? positive : softcap;
  return static_cast<float>(score * 0x1.71547652b82fep+0);  // log2 e
}

/// 2^x for x up to 127, 0 for x below -126.5; 2^0 is 1. Like sums of tensor cores, a device has an
/// order of its own: its instruction, whose error is less than 2^-22 of the result. Here it is 2^n
/// times a polynomial of x - n, whose error is at most 2.9e-6, far less than that of rounding a
/// weight to 16 bits. (Least largest relative error for |x - n| <= 1/2 among polynomials of degree
/// 4 with the value 1 at 0. On a device it would take 12 instructions in the place of one:
/// attention of 8,192 tokens 1,250 us, with degree 3 and fewer instructions, and not 1,040; H100.)
SINTER_DEVICE float attention_exp2(float x) {
#ifdef __CUDACC_RTC__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  constexpr float shift = 12582912.0f + 127.0f;  // 1.5 * 2^23: n + 127 in the low bits of the sum
  const float least = math::maximum(x, -127.0f), shifted = math::add(least, shift);
  const float r = math::sub(least, math::sub(shifted, shift));
  float p = 0x1.3a02ccp-7f;
  p = math::fma(p, r, 0x1.c9fc46p-5f);
  p = math::fma(p, r, 0x1.ec0378p-3f);
  p = math::fma(p, r, 0x1.62e12cp-1f);
  p = math::fma(p, r, 1.0f);
  return math::mul(p, math::bits_float(math::float_bits(shifted) << 23));
#endif
}

/// The number that stands for m where weights are computed.
SINTER_DEVICE float attention_base(float largest) {
  return largest == -math::infinity() ? 0.0f : largest;
}
/// The number that stands for m in the exponent of a weight.
SINTER_DEVICE float attention_shift(float largest, float factor, bool adds_mask) {
  const float base = attention_base(largest);
  return adds_mask ? -base : -math::mul(base, factor);
}
SINTER_DEVICE float attention_weight(float logit, float shift, float factor, bool adds_mask) {
  return attention_exp2(adds_mask ? math::mul(math::add(logit, shift), factor)
                                  : math::fma(logit, factor, shift));
}
/// The factor by which sums are multiplied where m grows; 1 where it does not.
SINTER_DEVICE float attention_scale(float before, float largest, float factor) {
  if (before == largest) return 1.0f;
  return attention_exp2(math::mul(math::sub(before, attention_base(largest)), factor));
}

/// The factor of a weighted sum at the end. No key was seen where l is 0: NaN or, with
/// `empty_zero`, zeros.
SINTER_DEVICE float attention_inverse(float weights, bool empty_zero) {
  return empty_zero && weights == 0.0f ? 0.0f : math::div(1.0f, weights);
}

}  // namespace sinter
