// Activations: x in float32, rounded once.
#include <numbers>

#include "ir/decomposition.h"

namespace sinter {
namespace {

/// 0.5 x (1 + t).
ValueId gelu_of(Decomposition& d, ValueId x, ValueId t) {
  Builder& b = d.b;
  const ValueId half = b.mul(d.constant(0.5), x);
  const ValueId factor = b.add(d.constant(1.0), t);
  return d.finish(b.mul(half, factor));
}

}  // namespace

/// x sigmoid(x).
ValueId decompose_silu(Decomposition& d) {
  Builder& b = d.b;
  const ValueId x = d.wide(d.operands[0]);
  return d.finish(b.mul(x, b.sigmoid(x)));
}

ValueId decompose_gelu(Decomposition& d) {
  Builder& b = d.b;
  const ValueId x = d.wide(d.operands[0]);
  return gelu_of(d, x, b.erf(b.mul(x, d.constant(std::numbers::sqrt2 / 2))));
}

/// t = tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
ValueId decompose_gelu_tanh(Decomposition& d) {
  Builder& b = d.b;
  const ValueId x = d.wide(d.operands[0]);
  const ValueId cube = b.mul(b.mul(x, x), x);
  const ValueId inner = b.add(x, b.mul(d.constant(0.044715), cube));
  const double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return gelu_of(d, x, b.tanh(b.mul(d.constant(factor), inner)));
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
