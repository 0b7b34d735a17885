// The choice of a token from logits: the arithmetic of op `sample`, the same text on host and
// device.
//
// Probabilities are integers: logit x_i weighs floor(2^40 exp((x_i - max x) / temperature)). So
// sums need no order, and every machine draws the same token. What weighs less than 2^-40 of the
// largest is never drawn. Cuts keep the logits whose key (an integer that grows with x) is at least
// a threshold:
//   top_k  the largest key that k elements reach or exceed
//   top_p  of those left, the largest key with weight(reaching it) >= top_p * weight(all left)
// A random integer r below the weight W of all that is left chooses the first element at which the
// running weight, in the order of the vocabulary, exceeds r.
//
// A row with a NaN, with a largest logit of +infinity or with -infinity alone gives kNoToken,
// greedy or drawn. A logit of -infinity beside others masks its token.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kMaxSampled = 1 << 20;  // elements: their weights together stay below 2^61
constexpr int kSampleThreads = 512;   // of the block that chooses on a device
constexpr int kNoToken = -1;          // the result for logits that choose none

/// math::order_key, but NaN, which only the padding of a row is after the search of its largest,
/// counts as the least.
SINTER_DEVICE math::u32 sampling_key(float x) { return x != x ? 0 : math::order_key(x); }
/// Whether tokens can be chosen from a row with this largest key: above that of -infinity, below
/// those of +infinity and NaN.
SINTER_DEVICE bool chooses(math::u32 largest) {
  return largest > 0x007fffffu && largest < 0xff800000u;
}

/// The power to which e is raised for x; `temperature` > 0.
SINTER_DEVICE float sampling_exponent(float x, float largest, float temperature) {
  return math::div(math::sub(x, largest), temperature);
}
/// 0 of NaN, which the exponent of padding is.
SINTER_DEVICE math::u64 sampling_weight(float exponent) {
  const float p = math::exp(exponent);
  return p > 0.0f ? static_cast<math::u64>(math::mul(p, 0x1p40f)) : 0;  // false for NaN
}

/// The least weight that satisfies top_p of `total`; at least 1.
SINTER_DEVICE math::u64 sampling_target(float top_p, math::u64 total) {
  if (!(top_p > 0.0f)) return 1;
  const double wanted = static_cast<double>(total) * static_cast<double>(top_p);
  if (!(wanted < static_cast<double>(total))) return total > 0 ? total : 1;
  const math::u64 whole = static_cast<math::u64>(wanted);
  return static_cast<double>(whole) < wanted ? whole + 1 : whole;
}

/// 64 random bits for one draw (the finalizer of SplitMix64, twice).
SINTER_DEVICE math::u64 sampling_bits(int seed, int step) {
  math::u64 x =
      static_cast<math::u64>(static_cast<math::u32>(seed)) << 32 | static_cast<math::u32>(step);
  for (int round = 0; round < 2; ++round) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    x ^= x >> 31;
  }
  return x;
}

/// A number of 0 .. bound - 1: the high half of bits * bound.
SINTER_DEVICE math::u64 sampling_below(math::u64 bits, math::u64 bound) {
#ifdef __CUDACC_RTC__
  return __umul64hi(bits, bound);
#else
  return static_cast<math::u64>(static_cast<unsigned __int128>(bits) * bound >> 64);
#endif
}

}  // namespace sinter
