// Ports of a kernel that computes tiles: chunks of 8 elements of an operand or a result behind an
// accessor (codegen/emission/element_ports.h).
#pragma once

#include "kernels/common/vector.cuh"

namespace sinter {

// The 8 elements of an operand from element `at` on, of which the first `valid` are there; zeros
// after them. `whole`: all chunks of the operand are whole, at multiples of 8 elements.
template <bool whole, typename Operand>
SINTER_DEVICE void read_port(float (&values)[8], const Operand& operand, long long at, int valid) {
  if constexpr (whole) {
    if (valid > 0) operand.chunk(values, at);
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (e < valid) values[e] = operand(at + e);
  }
}

// Gives the result the 8 elements from element `at` on, of which the first `valid` are there.
template <bool whole, typename Result>
SINTER_DEVICE void write_port(const Result& result, long long at, int valid,
                              const float (&values)[8]) {
  if constexpr (whole) {
    result.set_chunk(at, values);
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (e < valid) result.set(at + e, values[e]);
  }
}

// The result is memory: it takes the words of a chunk of 16-bit elements.
template <typename Result, typename = void>
constexpr bool kTakesWords = false;
template <typename Result>
constexpr bool kTakesWords<Result, decltype(static_cast<void>(&Result::set_words))> = true;

// The port of a result that nothing takes.
struct NoResult {
  SINTER_DEVICE void set(long long, float) const {}
  SINTER_DEVICE void set_chunk(long long, const float (&)[8]) const {}
};

}  // namespace sinter
