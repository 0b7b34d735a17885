// Products.
#include "ir/gradient.h"

namespace sinter {
namespace {

/// The einsum of two values, which are cast to float32 if their types differ. `dtype`: the type of
/// the operand; if it is float32 the product of 16-bit values is not rounded.
ValueId product(OpGradient& d, std::string spec, ValueId x, ValueId y, DType dtype) {
  if (d.b.type(x).dtype != d.b.type(y).dtype) {
    x = d.wide(x);
    y = d.wide(y);
  }
  Attributes attrs;
  attrs.set(AttrName::spec, std::move(spec));
  if (dtype == DType::f32 && d.b.type(x).dtype != dtype) attrs.set(AttrName::dtype, dtype);
  return d.b.op(OpKind::einsum, {x, y}, std::move(attrs));
}

/// The gradient [..., M] times w [M, K].
ValueId times_matrix(OpGradient& d, ValueId w) {
  if (d.b.type(w).dtype != d.op.type.dtype) w = d.wide(w);
  const ValueId transposed = d.b.transpose(w, {1, 0});
  return d.b.op(OpKind::linear, {d.gradient, transposed});
}

/// Each matrix of w [G, M, K] transposed.
ValueId transposed_matrices(OpGradient& d, ValueId w) { return d.b.transpose(w, {0, 2, 1}); }

}  // namespace

/// The caller sums the gradient of the bias.
Result<ValueId> gradient_linear(OpGradient& d, size_t operand) {
  if (operand == 0) return times_matrix(d, d.op.operands[1]);
  if (operand == 2) return d.gradient;
  std::string tokens;
  for (size_t i = 1; i < d.op.type.rank(); ++i) tokens += static_cast<char>('a' + i - 1);
  if (tokens.size() > 24) return d.has_none("an einsum has at most 26 axes");
  return product(d, fmt::format("{0}y,{0}z->yz", tokens), d.gradient, d.op.operands[0],
                 d.type(1).dtype);
}

/// Every letter stands in at least two of the three terms, so the terms may change places.
Result<ValueId> gradient_einsum(OpGradient& d, size_t operand) {
  const std::string spec = d.op.attrs.get<std::string>(AttrName::spec);
  const size_t comma = spec.find(','), arrow = spec.find("->");
  const std::string terms[] = {spec.substr(0, comma), spec.substr(comma + 1, arrow - comma - 1)};
  const size_t other = 1 - operand;
  return product(d, fmt::format("{},{}->{}", spec.substr(arrow + 2), terms[other], terms[operand]),
                 d.gradient, d.op.operands[other], d.type(operand).dtype);
}

/// The gradient of x is a product with the dequantized matrix.
Result<ValueId> gradient_quantized_linear(OpGradient& d, size_t operand) {
  if (operand == 2) return d.gradient;
  Attributes attrs;
  for (AttrName name : {AttrName::size, AttrName::codes}) attrs.set(name, *d.op.attrs.find(name));
  return times_matrix(d, d.b.op(OpKind::dequantize, {d.op.operands[1]}, std::move(attrs)));
}

/// grouped_linear and grouped_outer are each other's gradients. There is none where rows have a
/// length that the other op does not take.
Result<ValueId> gradient_grouped_linear(OpGradient& d, size_t operand) {
  const ValueId x = d.op.operands[0], w = d.op.operands[1], ends = d.op.operands[2];
  if (operand == 1) return d.try_op(OpKind::grouped_outer, {d.gradient, x, ends}, d.op.attrs);
  return d.try_op(OpKind::grouped_linear, {d.gradient, transposed_matrices(d, w), ends},
                  d.op.attrs);
}
Result<ValueId> gradient_grouped_outer(OpGradient& d, size_t operand) {
  const ValueId x = d.op.operands[0], y = d.op.operands[1], ends = d.op.operands[2];
  if (operand == 0) return d.try_op(OpKind::grouped_linear, {y, d.gradient, ends}, d.op.attrs);
  return d.try_op(OpKind::grouped_linear, {x, transposed_matrices(d, d.gradient), ends},
                  d.op.attrs);
}

}  // namespace sinter
