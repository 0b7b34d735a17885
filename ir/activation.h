// Activations that a matrix product may apply before it rounds: one text for host and device.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

enum class Activation : unsigned char { none, relu, gelu_tanh };

/// The formulas of ir/decompose_activations.cpp in float32.
SINTER_DEVICE float activated(Activation activation, float x) {
  if (activation == Activation::relu) return math::maximum(x, 0.0f);
  if (activation == Activation::none) return x;
  const float cube = math::mul(math::mul(x, x), x);
  const float inner = math::add(x, math::mul(0.044715f, cube));
  const float t = math::tanh(math::mul(0.7978845608028654f, inner));
  return math::mul(math::mul(0.5f, x), math::add(1.0f, t));
}

}  // namespace sinter
