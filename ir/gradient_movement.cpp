// Concatenation and rows by index.
#include "ir/gradient.h"

namespace sinter {
namespace {

/// `attrs` with the attribute `checked` of `op`, for an op that takes the same row numbers.
Attributes with_checked(const Op& op, Attributes attrs = {}) {
  if (const AttrValue* checked = op.attrs.find(AttrName::checked))
    attrs.set(AttrName::checked, *checked);
  return attrs;
}

}  // namespace

Result<ValueId> gradient_concat(OpGradient& d, size_t operand) {
  const int64_t axis = d.op.attrs.get<int64_t>(AttrName::axis);
  int64_t begin = 0;
  for (size_t i = 0; i < operand; ++i) begin += d.type(i).dims[axis].constant();
  return d.b.slice(d.gradient, axis, begin, d.type(operand).dims[axis]);
}

Result<ValueId> gradient_embedding(OpGradient& d, size_t) {
  const Dims table = d.type(0).dims;
  const auto rows = as_dim(volume(DimsRef(table).drop_back()));
  const auto count = as_dim(volume(d.type(1).dims));
  if (!rows || !count) return d.has_none("the number of ids or of rows is no constant or symbol");
  const ValueId ids = d.b.reshape(d.op.operands[1], {*count});
  const ValueId updates = d.b.reshape(d.gradient, {*count, table.back()});
  SINTER_LET(sums, d.try_op(OpKind::scatter_add, {ids, updates},
                            with_checked(d.op, Attributes().set(AttrName::rows, *rows))));
  return d.b.reshape(sums, table);
}

Result<ValueId> gradient_scatter_add(OpGradient& d, size_t) {
  return d.b.op(OpKind::embedding, {d.gradient, d.op.operands[0]}, with_checked(d.op));
}

/// Each element of x is compared with all indices along its row. A scatter_add of single elements
/// would do less work for many indices, but needs the number of x's elements as one extent.
Result<ValueId> gradient_gather(OpGradient& d, size_t) {
  Builder& b = d.b;
  const auto axis = static_cast<size_t>(d.op.attrs.get<int64_t>(AttrName::axis));
  const TensorType x = d.type(0);
  Dims per_index = d.op.type.dims, places(x.rank() + 1, Dim(1));
  per_index.insert(per_index.begin() + axis + 1, Dim(1));
  places[axis + 1] = x.dims[axis];
  const ValueId index = b.reshape(d.op.operands[1], per_index);
  const ValueId gradient = b.reshape(d.gradient, per_index);
  const ValueId place = b.iota(places, static_cast<int64_t>(axis) + 1);
  const ValueId is_there = b.equal(index, place), zero = b.constant(0, x.dtype);
  const ValueId chosen = d.where(is_there, gradient, zero);
  Dims sum = b.type(chosen).dims;
  sum[axis] = 1;
  return b.reshape(sum_to(b, chosen, sum), x.dims);
}

}  // namespace sinter
