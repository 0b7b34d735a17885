// Products of tensor cores on the host: the products of a step of 16 elements are added to the sum
// in float64, upwards, and the sum is rounded once. A device adds them in an order of its own.
#pragma once

#include <algorithm>

#include "ir/dtype.h"
#include "ir/scalar_math.h"

namespace sinter {

inline constexpr int64_t kTensorCoreStep = 16;

/// sum + a(k) * b(k) for `count` elements k, at most kTensorCoreStep.
template <typename A, typename B>
float multiply_step(float sum, const A& a, const B& b, int64_t count) {
  double exact = sum;
  for (int64_t k = 0; k < count; ++k)
    exact += static_cast<double>(a(k)) * static_cast<double>(b(k));
  return static_cast<float>(exact);
}

/// The dot product of `count` elements, a step after the other.
inline float dot_of_steps(const float* a, const float* b, int64_t count) {
  float dot = 0;
  for (int64_t i = 0; i < count; i += kTensorCoreStep)
    dot = multiply_step(
        dot, [&](int64_t k) { return a[i + k]; }, [&](int64_t k) { return b[i + k]; },
        std::min(kTensorCoreStep, count - i));
  return dot;
}
inline double dot_of_steps(const double* a, const double* b, int64_t count) {
  double dot = 0;
  for (int64_t i = 0; i < count; ++i) dot += a[i] * b[i];
  return dot;
}

/// x in a type of 16 bits.
inline float rounded_to_16_bits(float x, DType dtype) {
  return dtype == DType::f16 ? math::f16_to_float(math::float_to_f16(x))
                             : math::bf16_to_float(math::float_to_bf16(x));
}

}  // namespace sinter
