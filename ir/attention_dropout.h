// Which weights of attention a dropout leaves out; the same text on host and device.
//
// A weight has a place: its head, counted over all sequences, its token and its key. 16 random bits
// of the place, made of the seed by a mixing function of 32 bits, are compared with a threshold. So
// attention and its gradients find the same weights without a mask in memory, in any order. Two
// keys, k and k + 8 of 16, share a word of bits: a lane that has one of them in a product of tensor
// cores has the other one too.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// A weight is left out if its 16 bits are below the threshold, so with that probability of 65,536;
/// 1 .. 65,535 for probabilities between 0 and 1.
SINTER_DEVICE constexpr int dropout_threshold(double probability) {
  const int threshold = static_cast<int>(probability * 65536 + 0.5);
  return threshold < 1 ? 1 : threshold > 65535 ? 65535 : threshold;
}
/// One over the probability that a weight stays.
SINTER_DEVICE constexpr float dropout_scale(int threshold) {
  return static_cast<float>(65536.0 / (65536 - threshold));
}

/// The numbers of dropout_mix: 2^32 over the golden ratio, made odd, and the factors of
/// "lowbias32".
struct DropoutMix {
  static constexpr math::u32 step = 0x9e3779b1u, first = 0x7feb352du, second = 0x846ca68bu;
};
/// Mixes a number into another one: the function "lowbias32" of C. Wellons' hash-prospector, of a
/// combination of both.
SINTER_DEVICE math::u32 dropout_mix(math::u32 a, math::u32 b) {
  math::u32 x = a ^ b * DropoutMix::step;
  x = (x ^ x >> 16) * DropoutMix::first;
  x = (x ^ x >> 15) * DropoutMix::second;
  return x ^ x >> 16;
}
/// The part of a weight's bits that all keys of a token's head share. `head`: of all sequences.
SINTER_DEVICE math::u32 dropout_row(int seed, math::u32 head, math::u32 token) {
  return dropout_mix(dropout_mix(static_cast<math::u32>(seed), head), token);
}
/// The number of the pair that a key is in: k and k + 8, where k mod 16 < 8.
SINTER_DEVICE int dropout_pair(int key) { return key / 16 * 8 + key % 8; }
/// The bits of a pair of keys: the low half is of the first one.
SINTER_DEVICE math::u32 dropout_word(math::u32 row, int pair) {
  return dropout_mix(row, static_cast<math::u32>(pair));
}
/// Whether the weight stays; `high`: its key is the second one of the pair.
SINTER_DEVICE bool dropout_keeps(math::u32 word, bool high, int threshold) {
  return (high ? word : word << 16) >= static_cast<math::u32>(threshold) << 16;
}

}  // namespace sinter
