// Norms and softmax: reductions over the last axis.
#include <llvm/ADT/STLExtras.h>

#include <limits>

#include "ir/attention_heads.h"
#include "ir/decomposition.h"

namespace sinter {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

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

/// `largest`: of each row of x.
ValueId softmax_of(Decomposition& d, ValueId x, ValueId largest) {
  Builder& b = d.b;
  // No x is above the maximum.
  const ValueId e = b.exp_neg_abs(b.sub(x, largest));
  // One division a row: it costs as much as ten multiplications.
  return b.mul(e, b.div(d.constant(1), d.row(OpKind::reduce_sum, e)));
}

ValueId scaled_scores(Decomposition& d) {
  Builder& b = d.b;
  const ValueId scores = b.mul(d.operands[0], d.constant(d.attrs.get<double>(AttrName::scale)));
  const AttrValue* softcap = d.attrs.find(AttrName::softcap);
  if (softcap == nullptr) return scores;
  const ValueId cap = d.constant(std::get<double>(*softcap));
  return b.mul(b.tanh(b.div(scores, cap)), cap);
}

/// i1: `seen`, and the key is one of the last `window` up to the token's slot.
ValueId in_window(Decomposition& d, ValueId seen, ValueId slot, ValueId key) {
  const AttrValue* window = d.attrs.find(AttrName::window);
  if (window == nullptr || std::get<int64_t>(*window) > std::numeric_limits<int32_t>::max())
    return seen;
  const double keys = static_cast<double>(std::get<int64_t>(*window));
  const ValueId before = d.b.sub(slot, d.b.constant(keys, DType::i32));
  return d.b.logical_and(seen, d.b.less(before, key));
}

/// i1: whether the key is in the token's range, or one of the sink up to its slot.
ValueId in_range(Decomposition& d) {
  Builder& b = d.b;
  const Dims& dims = d.type(d.operands[0]).dims;
  const size_t rank = dims.size();
  Dims per_key(rank, Dim(1)), per_token(rank, Dim(1));
  per_key.back() = dims.back();
  const Dims& tokens = d.type(d.operands[1]).dims;
  llvm::copy(tokens, per_token.end() - 1 - static_cast<ptrdiff_t>(tokens.size()));
  const ValueId first = b.reshape(d.operands[1], per_token);
  const ValueId slot = b.reshape(d.operands[2], per_token);
  const ValueId key = b.iota(per_key, static_cast<int64_t>(rank) - 1);
  const ValueId from_first = b.less_equal(first, key);
  const ValueId to_slot = b.less_equal(key, slot);
  const ValueId seen = in_window(d, b.logical_and(from_first, to_slot), slot, key);
  const int64_t sink = attention_sink(d.attrs);
  if (sink == 0) return seen;
  const ValueId leads = b.less(key, b.constant(static_cast<double>(sink), DType::i32));
  return b.logical_or(seen, b.logical_and(leads, to_slot));
}

/// -inf for keys that are not seen; a mask of numbers is added.
ValueId masked_scores(Decomposition& d, ValueId scores) {
  Builder& b = d.b;
  ValueId seen = in_range(d);
  if (d.operands.size() == 4 && d.type(d.operands[3]).dtype == DType::i1)
    seen = b.logical_and(seen, d.operands[3]);
  else if (d.operands.size() == 4)
    scores = b.add(scores, d.wide(d.operands[3]));
  return b.op(OpKind::where, {seen, scores, d.constant(-kInfinity)});
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
  const ValueId x = d.wide(d.operands[0]);
  return d.finish(softmax_of(d, x, d.row(OpKind::reduce_max, x)));
}

/// Keys that a token does not see have the score -inf, so probability 0.
ValueId decompose_attention_softmax(Decomposition& d) {
  const ValueId scores = masked_scores(d, scaled_scores(d));
  const DType dtype = d.attrs.get<DType>(AttrName::dtype);
  const ValueId largest = d.row(OpKind::reduce_max, scores);
  ValueId weights = softmax_of(d, scores, largest);
  if (d.attrs.is_set(AttrName::empty_zero)) {
    const ValueId empty = d.b.op(OpKind::equal, {largest, d.constant(-kInfinity)});
    weights = d.b.op(OpKind::where, {empty, d.constant(0), weights});
  }
  return d.finish(weights, dtype);
}

}  // namespace sinter
