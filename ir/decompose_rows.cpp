// Norms and softmax: reductions over the last axis.
#include <limits>

#include "ir/decomposition.h"

namespace sinter {
namespace {

/// The sum of each row divided by its length, a constant.
ValueId mean(Decomposition& d, ValueId x) {
  const double length = static_cast<double>(d.type(x).dims.back().constant());
  const ValueId sum = d.row(OpKind::reduce_sum, x);
  return d.b.div(sum, d.constant(length));
}

ValueId inverse_deviation(Decomposition& d, ValueId squares) {
  Builder& b = d.b;
  const ValueId variance = mean(d, squares);
  return b.rsqrt(b.add(variance, d.constant(d.attrs.get<double>(AttrName::eps))));
}

ValueId softmax_of(Decomposition& d, ValueId x, DType dtype) {
  Builder& b = d.b;
  // No x is above the maximum.
  const ValueId e = b.exp_neg_abs(b.sub(x, d.row(OpKind::reduce_max, x)));
  // One division a row: it costs as much as ten multiplications.
  return d.finish(b.mul(e, b.div(d.constant(1), d.row(OpKind::reduce_sum, e))), dtype);
}

}  // namespace

/// All in float32, rounded once.
ValueId decompose_layer_norm(Decomposition& d) {
  Builder& b = d.b;
  const ValueId x = d.wide(d.operands[0]);
  const ValueId centered = b.sub(x, mean(d, x));
  const ValueId scale = inverse_deviation(d, b.mul(centered, centered));
  const ValueId normal = b.mul(centered, scale);
  ValueId result = b.mul(normal, d.wide(d.operands[1]));
  if (d.operands.size() == 3) result = b.add(result, d.wide(d.operands[2]));
  return d.finish(result);
}

/// Rounded before the weight is applied, as the models' own code does.
ValueId decompose_rms_norm(Decomposition& d) {
  Builder& b = d.b;
  const ValueId x = d.wide(d.operands[0]);
  const ValueId normal = b.mul(x, inverse_deviation(d, b.mul(x, x)));
  return d.finish(b.mul(b.cast(normal, d.type(d.operands[0]).dtype), d.operands[1]));
}

ValueId decompose_softmax(Decomposition& d) {
  return softmax_of(d, d.wide(d.operands[0]), d.type(d.operands[0]).dtype);
}

/// Keys that a token does not see have score -inf, so probability 0.
ValueId decompose_attention_softmax(Decomposition& d) {
  Builder& b = d.b;
  const Dims dims = d.type(d.operands[0]).dims;
  const size_t rank = dims.size();
  Dims per_token(rank, Dim(1)), per_key(rank, Dim(1));
  per_token[rank - 2] = dims[rank - 2];
  per_key[rank - 1] = dims[rank - 1];
  const ValueId first = b.reshape(d.operands[1], per_token);
  const ValueId slot = b.reshape(d.operands[2], per_token);
  const ValueId key = b.op(OpKind::iota, {},
                           Attributes()
                               .set(AttrName::axis, static_cast<int64_t>(rank) - 1)
                               .set(AttrName::dims, per_key));
  const ValueId from_first = b.less_equal(first, key);
  const ValueId to_slot = b.less_equal(key, slot);
  ValueId seen = b.logical_and(from_first, to_slot);
  const AttrValue* window = d.attrs.find(AttrName::window);
  if (window != nullptr && std::get<int64_t>(*window) <= std::numeric_limits<int32_t>::max()) {
    const double keys = static_cast<double>(std::get<int64_t>(*window));
    const ValueId before = b.sub(slot, b.constant(keys, DType::i32));
    seen = b.logical_and(seen, b.less(before, key));
  }
  ValueId scores = b.mul(d.operands[0], d.constant(d.attrs.get<double>(AttrName::scale)));
  if (const AttrValue* softcap = d.attrs.find(AttrName::softcap)) {
    const ValueId cap = d.constant(std::get<double>(*softcap));
    scores = b.mul(b.tanh(b.div(scores, cap)), cap);
  }
  const ValueId minus_infinity = d.constant(-std::numeric_limits<double>::infinity());
  return softmax_of(d, b.op(OpKind::where, {seen, scores, minus_infinity}),
                    d.attrs.get<DType>(AttrName::dtype));
}

}  // namespace sinter
