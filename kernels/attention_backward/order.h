// The gradient of attention on tensor cores: the order of operations of attention_query_gradient,
// attention_key_gradient and attention_value_gradient, the same text on host and device.
//
// For each query head, and each token and key of it that the token sees:
//
//   1. The dot product q·k as in tiled_attention, and its logit.
//   2. The probability P = attention_probability(logit): no maximum has to be found again, since
//      the log-sum has it.
//   3. dP, the dot product of the gradient of the attention's result and the key's value, as q·k.
//      Under a dropout, whose scale multiplies it, it is 0 where the weight is left out.
//   4. dS = P (dP - delta), each operation rounded to float32, the scale and the difference
//   together; under a mask, 0 where P is 0. Under
//      a soft cap P (1 - t t) replaces P, where t is the hyperbolic tangent of the score over the
//      cap: one fused multiply-add and a product.
//
// P and dS are 0 where the token does not see the key; they are rounded to the type of the operands
// before they are multiplied, a step of 16 tokens or keys, from multiples of 16 on, after the
// other:
//
//   gradient of a query   the sum over keys, upwards, of dS times the key; times the scale
//   gradient of a key     the sum over the query heads of the key's head, one after the other, of
//                         the sums over tokens, upwards, of dS times the query; times the scale
//   gradient of a value   the same of P times the gradient of the attention's result; P is 0 where
//                         a dropout leaves the weight out, and its scale multiplies the sum
//
// Each is one float32 sum, rounded once at the end. So no bit depends on the sizes of tiles, nor on
// whether a kernel computes one gradient or two. (A key that is infinite or NaN may make NaN of the
// gradient of a token that does not see it, if another token of its block does: it is multiplied
// with 0. The same holds for tokens that do not see a key.)
#pragma once

#include "ir/attention_dropout.h"
#include "kernels/common/attention_score.cuh"
#include "kernels/common/visible_keys.cuh"

namespace sinter {

/// Elements of a head of queries, keys and values that the kernels take.
constexpr int kMaxGradientWidth = 128;
SINTER_DEVICE constexpr bool is_gradient_width(long long width) {
  return width >= 1 && width <= kMaxGradientWidth;
}

/// The number that is added to the exponent of a probability: the log-sum with the other sign. A
/// token that sees no key has probabilities of 0.
SINTER_DEVICE float probability_shift(float log_sum) {
  return log_sum == -math::infinity() ? log_sum : -log_sum;
}
SINTER_DEVICE float attention_probability(float logit, float shift, float factor) {
  return attention_exp2(math::fma(logit, factor, shift));
}
/// The factor of dP - delta under a soft cap.
SINTER_DEVICE float capped_probability(float probability, float tanh) {
  return math::mul(probability, math::fma(-tanh, tanh, 1.0f));
}
/// dP - delta, of a weight that a dropout leaves out or multiplies.
SINTER_DEVICE float dropped_difference(bool keeps, float gradient, float scale, float delta) {
  return keeps ? math::fma(gradient, scale, -delta) : -delta;
}
/// dS of a probability and dP - delta. A key that a mask hides may have an infinite dP.
SINTER_DEVICE float logit_gradient(float probability, float difference, bool is_masked) {
  if (is_masked && probability == 0.0f) return 0.0f;
  return math::mul(probability, difference);
}

}  // namespace sinter
