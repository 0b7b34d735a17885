// Reductions and cumulative sums.
#include "ir/gradient.h"

namespace sinter {

Result<ValueId> gradient_reduce_sum(OpGradient& d, size_t) {
  const Dims summed = d.type(0).dims;
  return d.b.broadcast(d.gradient, summed);
}

/// Elements that equal the maximum share the gradient evenly.
Result<ValueId> gradient_reduce_max(OpGradient& d, size_t) {
  const ValueId is_largest = d.b.equal(d.op.operands[0], d.result);
  const ValueId count = d.b.reduce(OpKind::reduce_sum, d.wide(is_largest),
                                   d.op.attrs.get<std::vector<int64_t>>(AttrName::axes));
  const ValueId share = d.divided_by(count), zero = d.constant(0);
  return d.where(is_largest, share, zero);
}

Result<ValueId> gradient_cumulative_sum(OpGradient& d, size_t) {
  Attributes attrs = d.op.attrs;
  attrs.set(AttrName::reverse, int64_t{!attrs.is_set(AttrName::reverse)});
  return d.b.op(OpKind::cumulative_sum, {d.gradient}, std::move(attrs));
}

}  // namespace sinter
