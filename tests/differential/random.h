// Random numbers that are the same on every machine and in every build.
#pragma once

#include <cstdint>

#include "ir/error.h"

namespace sinter {

/// SplitMix64: a counter through a mixing function (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  /// 0 .. n-1.
  int64_t below(int64_t n) {
    SINTER_CHECK(n > 0, "{}", n);
    return static_cast<int64_t>(next() % static_cast<uint64_t>(n));
  }
  /// low .. high.
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  /// True in `percent` of 100 cases.
  bool chance(int percent) { return below(100) < percent; }
  /// -1 .. 1, a multiple of 2^-20.
  float unit() { return static_cast<float>(between(-(1 << 20), 1 << 20)) / (1 << 20); }
  template <typename List>
  const auto& pick(const List& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(std::size(list))))];
  }

 private:
  uint64_t state_;
};

}  // namespace sinter
