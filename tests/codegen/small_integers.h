// Integers so small that products and sums of them are exact in every order.
#pragma once

#include "ir/scalar_math.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

/// -2 .. 2, in a pattern of no short period; of f32, f16 or bf16.
inline void make_small_integers(HostTensor& tensor) {
  for (int64_t i = 0; i < tensor.volume(); ++i) {
    const float value = static_cast<float>((i * i + i / 7) % 5 - 2);
    if (tensor.dtype == DType::f32) tensor.data<float>()[i] = value;
    if (tensor.dtype == DType::f16) tensor.data<uint16_t>()[i] = math::float_to_f16(value);
    if (tensor.dtype == DType::bf16) tensor.data<uint16_t>()[i] = math::float_to_bf16(value);
  }
}

}  // namespace sinter
