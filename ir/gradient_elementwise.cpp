// Elementwise ops, in float32. At points without a derivative the gradients are PyTorch's, but for
// exp_neg_abs.
#include <numbers>

#include "ir/gradient.h"

namespace sinter {
namespace {

/// The operand that is the result has the gradient; equal operands have half of it each. If one is
/// NaN, both have it.
ValueId gradient_of_choice(OpGradient& d, size_t operand, bool is_maximum) {
  const ValueId own = d.operand(operand), other = d.operand(1 - operand);
  const ValueId loses = is_maximum ? d.b.less(own, other) : d.b.less(other, own);
  const ValueId is_tie = d.b.equal(own, other);
  const ValueId half = d.constant(0.5), zero = d.constant(0), one = d.constant(1);
  const ValueId factor = d.where(loses, zero, one);
  return d.times(d.where(is_tie, half, factor));
}

}  // namespace

Result<ValueId> gradient_neg(OpGradient& d, size_t) { return d.b.neg(d.gradient); }
/// The slope at 0 is 0.
Result<ValueId> gradient_abs(OpGradient& d, size_t) {
  const ValueId x = d.operand(0), zero = d.constant(0);
  const ValueId one = d.constant(1), minus_one = d.constant(-1);
  const ValueId above = d.b.less(zero, x), below = d.b.less(x, zero);
  const ValueId below_or_at = d.where(below, minus_one, zero);
  return d.times(d.where(above, one, below_or_at));
}
Result<ValueId> gradient_floor(OpGradient&, size_t) { return ValueId(); }
Result<ValueId> gradient_round(OpGradient&, size_t) { return ValueId(); }

Result<ValueId> gradient_exp(OpGradient& d, size_t) { return d.times(d.value()); }
/// The slope at 0 is 1, as to the left of 0: the operands in softmax are never above 0.
Result<ValueId> gradient_exp_neg_abs(OpGradient& d, size_t) {
  const ValueId y = d.value(), x = d.operand(0), zero = d.constant(0);
  const ValueId falls = d.b.less(zero, x), minus_y = d.b.neg(y);
  return d.times(d.where(falls, minus_y, y));
}
Result<ValueId> gradient_expm1(OpGradient& d, size_t) {
  const ValueId y = d.value(), one = d.constant(1);
  return d.times(d.b.add(y, one));
}
Result<ValueId> gradient_log(OpGradient& d, size_t) { return d.divided_by(d.operand(0)); }
Result<ValueId> gradient_log1p(OpGradient& d, size_t) {
  const ValueId x = d.operand(0), one = d.constant(1);
  return d.divided_by(d.b.add(x, one));
}
Result<ValueId> gradient_sqrt(OpGradient& d, size_t) {
  const ValueId y = d.value();
  return d.divided_by(d.b.add(y, y));
}
/// The slope is -1/2 y^3.
Result<ValueId> gradient_rsqrt(OpGradient& d, size_t) {
  const ValueId y = d.value(), factor = d.constant(-0.5);
  const ValueId square = d.b.mul(y, y);
  const ValueId cube = d.b.mul(square, y);
  return d.times(d.b.mul(factor, cube));
}
Result<ValueId> gradient_sigmoid(OpGradient& d, size_t) {
  const ValueId y = d.value(), one = d.constant(1);
  const ValueId rest = d.b.sub(one, y);
  return d.times(d.b.mul(y, rest));
}
Result<ValueId> gradient_tanh(OpGradient& d, size_t) {
  const ValueId y = d.value(), one = d.constant(1);
  const ValueId square = d.b.mul(y, y);
  return d.times(d.b.sub(one, square));
}
/// The slope is 2 / sqrt(pi) e^(-x^2).
Result<ValueId> gradient_erf(OpGradient& d, size_t) {
  const ValueId x = d.operand(0), factor = d.constant(2 * std::numbers::inv_sqrtpi);
  const ValueId square = d.b.mul(x, x);
  const ValueId power = d.b.exp(d.b.neg(square));
  return d.times(d.b.mul(factor, power));
}
Result<ValueId> gradient_sin(OpGradient& d, size_t) { return d.times(d.b.cos(d.operand(0))); }
Result<ValueId> gradient_cos(OpGradient& d, size_t) {
  return d.times(d.b.neg(d.b.sin(d.operand(0))));
}
/// The slope is 1 / (1 + x^2).
Result<ValueId> gradient_atan(OpGradient& d, size_t) {
  const ValueId x = d.operand(0), one = d.constant(1);
  const ValueId square = d.b.mul(x, x);
  return d.divided_by(d.b.add(one, square));
}

Result<ValueId> gradient_add(OpGradient& d, size_t) { return d.gradient; }
Result<ValueId> gradient_sub(OpGradient& d, size_t operand) {
  return operand == 0 ? d.gradient : d.b.neg(d.gradient);
}
Result<ValueId> gradient_mul(OpGradient& d, size_t operand) {
  return d.times(d.operand(1 - operand));
}
Result<ValueId> gradient_div(OpGradient& d, size_t operand) {
  const ValueId divisor = d.operand(1);
  const ValueId share = d.divided_by(divisor);
  if (operand == 0) return share;
  const ValueId quotient = d.b.div(d.operand(0), divisor);
  return d.b.neg(d.b.mul(share, quotient));
}
/// The slope in a is b a^(b - 1), 0 where b is 0; in b it is a^b log a, 0 where a is 0 and b >= 0.
Result<ValueId> gradient_pow(OpGradient& d, size_t operand) {
  const ValueId a = d.operand(0), exponent = d.operand(1), zero = d.constant(0);
  if (operand == 0) {
    const ValueId one = d.constant(1), is_zero = d.b.equal(exponent, zero);
    const ValueId power = d.b.pow(a, d.b.sub(exponent, one));
    const ValueId slope = d.b.mul(exponent, power);
    return d.times(d.where(is_zero, zero, slope));
  }
  const ValueId is_zero = d.b.equal(a, zero), grows = d.b.less_equal(zero, exponent);
  const ValueId y = d.value(), log = d.b.log(a);
  const ValueId slope = d.b.mul(y, log);
  return d.times(d.where(d.b.logical_and(is_zero, grows), zero, slope));
}
Result<ValueId> gradient_maximum(OpGradient& d, size_t operand) {
  return gradient_of_choice(d, operand, true);
}
Result<ValueId> gradient_minimum(OpGradient& d, size_t operand) {
  return gradient_of_choice(d, operand, false);
}

Result<ValueId> gradient_where(OpGradient& d, size_t operand) {
  const ValueId condition = d.op.operands[0], zero = d.b.constant(0, d.op.type.dtype);
  return operand == 1 ? d.where(condition, d.gradient, zero) : d.where(condition, zero, d.gradient);
}
Result<ValueId> gradient_cast(OpGradient& d, size_t) { return d.gradient; }
Result<ValueId> gradient_copy(OpGradient& d, size_t) { return d.gradient; }

}  // namespace sinter
