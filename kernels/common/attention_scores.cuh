// Scores of attention in float32 and their weights in an online softmax; the same text on host and
// device.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// A score from a dot product; `softcap` 0: none.
SINTER_DEVICE float attention_score(float dot, float scale, float softcap) {
  const float score = math::mul(dot, scale);
  if (softcap == 0.0f) return score;
  return math::mul(math::tanh(math::div(score, softcap)), softcap);
}

/// A score and what the mask has for its key.
SINTER_DEVICE float attention_score(float score, bool seen) {
  return seen ? score : -math::infinity();
}
SINTER_DEVICE float attention_score(float score, float added) { return math::add(score, added); }

/// exp(from - to): the weight of a score under the maximum `to`, and what a sum taken under the
/// maximum `from` is worth under it. A score of -inf weighs nothing, even if it is the largest so
/// far.
SINTER_DEVICE float attention_weight(float from, float to) {
  // Computed in any case, so that the choice needs no branch.
  const float weight = math::exp_neg_abs(math::sub(from, to));
  return from == -math::infinity() ? 0.0f : weight;
}

/// The weighted sum of a token's values over the sum of the weights. Where that is 0, no key was
/// seen: NaN or, with `empty_zero`, 0.
SINTER_DEVICE float attention_result(float sum, float weights, bool empty_zero) {
  return empty_zero && weights == 0.0f ? 0.0f : math::div(sum, weights);
}

}  // namespace sinter
