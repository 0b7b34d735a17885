// Scores of attention on tensor cores and powers of two of them, for attention and its gradient;
// the same text on host and device.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// The part of its soft cap that a score is; `softcap` 0: there is none.
SINTER_DEVICE float attention_tanh(float dot, float scale, float softcap) {
  return softcap == 0.0f ? 0.0f : math::tanh(math::div(math::mul(dot, scale), softcap));
}
/// Scores are compared before they are multiplied by the factor. `tanh`: attention_tanh of `dot`.
SINTER_DEVICE float capped_logit(float dot, float tanh, float scale, float softcap) {
  if (softcap == 0.0f) return scale < 0.0f ? -dot : dot;
  return tanh;
}
/// With a mask of truth values.
SINTER_DEVICE float capped_logit(float dot, float tanh, float scale, float softcap, bool seen) {
  return seen ? capped_logit(dot, tanh, scale, softcap) : -math::infinity();
}
/// With a mask of numbers, one of which is added to the score: the logit is the score itself.
SINTER_DEVICE float capped_logit(float dot, float tanh, float scale, float softcap, float added) {
  if (softcap == 0.0f) return math::fma(dot, scale, added);
  return math::fma(tanh, softcap, added);
}
/// The logit of a dot product; `mask`: nothing, whether the key is seen, or the number added.
template <typename... Mask>
SINTER_DEVICE float attention_logit(float dot, float scale, float softcap, Mask... mask) {
  return capped_logit(dot, attention_tanh(dot, scale, softcap), scale, softcap, mask...);
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
/// times a polynomial of x - n, whose error is at most 2.9e-6, far less than the error of rounding
/// a weight to 16 bits. (Least largest relative error for |x - n| <= 1/2 among polynomials of
/// degree 4 with the value 1 at 0. On a device it would take 12 instructions instead of one:
/// attention of 8,192 tokens takes 1,250 us with degree 3, which has fewer instructions, instead of
/// 1,040; H100.)
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

/// log2 x of a float that is not negative; -inf for 0. As attention_exp2 has, a device has an order
/// of its own: its instruction, whose error is at most 2^-22, relative where |log2 x| > 1.
SINTER_DEVICE float attention_log2(float x) {
#ifdef __CUDACC_RTC__
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return math::mul(math::log(x), 0x1.715476p+0f);  // log2 e
#endif
}

}  // namespace sinter
