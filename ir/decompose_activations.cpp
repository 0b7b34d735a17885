// Activations: x in float32, rounded once.
#include <numbers>

#include "ir/decomposition.h"

namespace sinter {

/// x sigmoid(x).
ValueId decompose_silu(Decomposition& d) {
  Builder& b = d.b;
  const ValueId x = d.wide(d.operands[0]);
  return d.finish(b.mul(x, b.sigmoid(x)));
}

/// 0.5 x (1 + erf(x / sqrt(2))).
ValueId decompose_gelu(Decomposition& d) {
  Builder& b = d.b;
  const ValueId x = d.wide(d.operands[0]);
  const ValueId t = b.erf(b.mul(x, d.constant(std::numbers::sqrt2 / 2)));
  const ValueId half = b.mul(d.constant(0.5), x);
  return d.finish(b.mul(half, b.add(d.constant(1.0), t)));
}

/// 0.5 x (1 + tanh(u)) = x sigmoid(2 u), 2 u = x (a + b x^2), a = 2 sqrt(2 / pi), b = 0.044715 a.
/// The sigmoid takes two thirds of tanh's instructions, and nothing cancels where u is below 0.
ValueId decompose_gelu_tanh(Decomposition& d) {
  Builder& b = d.b;
  const ValueId x = d.wide(d.operands[0]);
  const double a = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const ValueId cubic = b.mul(d.constant(0.044715 * a), b.mul(x, x));
  const ValueId twice_u = b.mul(x, b.add(d.constant(a), cubic));
  return d.finish(b.mul(x, b.sigmoid(twice_u)));
}

/// x sigmoid(1.702 x).
ValueId decompose_quick_gelu(Decomposition& d) {
  Builder& b = d.b;
  const ValueId x = d.wide(d.operands[0]);
  return d.finish(b.mul(x, b.sigmoid(b.mul(d.constant(1.702), x))));
}

ValueId decompose_relu(Decomposition& d) {
  const ValueId x = d.wide(d.operands[0]);
  return d.finish(d.b.maximum(x, d.constant(0.0)));
}

}  // namespace sinter
