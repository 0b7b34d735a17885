// Other ways of reading the operand.
#include "ir/contraction.h"
#include "ir/gradient.h"

namespace sinter {
namespace {

/// The gradient between zeros: `begin` of them before it, up to `extent` elements along the axis.
ValueId with_zeros(OpGradient& d, int64_t axis, int64_t begin, int64_t extent) {
  TensorType zeros = d.op.type;
  llvm::SmallVector<ValueId, 3> parts;
  const auto add_zeros = [&](int64_t count) {
    zeros.dims[axis] = count;
    if (count > 0) parts.push_back(d.b.constant(0, zeros.dtype, zeros.dims));
  };
  add_zeros(begin);
  parts.push_back(d.gradient);
  add_zeros(extent - begin - d.op.type.dims[axis].constant());
  return d.b.op(OpKind::concat, parts, Attributes().set(AttrName::axis, axis));
}

/// The same along an axis whose extent is a symbol: scatter_add of the slices along the axis.
Result<ValueId> scattered(OpGradient& d, int64_t axis, int64_t begin) {
  Builder& b = d.b;
  const Dim count = d.op.type.dims[axis], extent = d.type(0).dims[axis];
  std::vector<int64_t> axes{axis};
  Dims dims{extent};
  for (int64_t i = 0; i < static_cast<int64_t>(d.op.type.rank()); ++i) {
    if (i == axis) continue;
    axes.push_back(i);
    dims.push_back(d.op.type.dims[i]);
  }
  const auto width = as_dim(volume(DimsRef(dims).drop_front()));
  if (!width) return d.has_none("the other extents' product is no symbol");
  const ValueId moved = b.transpose(d.gradient, axes);
  const ValueId rows = b.reshape(moved, {count, *width});
  const ValueId places = b.iota(Dims{count}, 0);
  const ValueId first = b.constant(static_cast<double>(begin), DType::i32);
  const ValueId numbers = b.add(places, first);
  SINTER_LET(sum, d.try_op(OpKind::scatter_add, {numbers, rows},
                           Attributes().set(AttrName::rows, extent)));
  return b.transpose(b.reshape(sum, dims), inverse_order(axes));
}

}  // namespace

Result<ValueId> gradient_reshape(OpGradient& d, size_t) {
  return d.b.reshape(d.gradient, d.type(0).dims);
}

Result<ValueId> gradient_transpose(OpGradient& d, size_t) {
  const auto& axes = d.op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  return d.b.transpose(d.gradient, inverse_order(axes));
}

Result<ValueId> gradient_slice(OpGradient& d, size_t) {
  const int64_t axis = d.op.attrs.get<int64_t>(AttrName::axis);
  const int64_t begin = d.op.attrs.get<int64_t>(AttrName::begin);
  const Dim extent = d.type(0).dims[axis];
  if (d.op.type.dims[axis] == extent) return d.gradient;
  if (!extent.is_constant()) return scattered(d, axis, begin);
  return with_zeros(d, axis, begin, extent.constant());
}

/// The caller sums it.
Result<ValueId> gradient_broadcast(OpGradient& d, size_t) { return d.gradient; }

}  // namespace sinter
