// Other ways of reading the operand.
#include <set>

#include "ir/infer.h"
#include "ir/inference.h"
#include "ir/sym_expr.h"

namespace sinter {

Result<TensorType> infer_reshape(const Inference& op) {
  const TensorType& x = op.operands[0];
  const Dims& dims = op.attrs.get<Dims>(AttrName::dims);
  const SymExpr before = volume(x.dims), after = volume(dims);
  if (before != after || after.overflowed())
    return op.reject(4,
                     fmt::format("{} elements in {} become {} in {}", to_string(before, op.symbols),
                                 op.show(x.dims), to_string(after, op.symbols), op.show(dims)));
  return TensorType{x.dtype, dims};
}

Result<TensorType> infer_transpose(const Inference& op) {
  const TensorType& x = op.operands[0];
  const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  const std::set<int64_t> distinct(axes.begin(), axes.end());
  if (axes.size() != x.rank() || distinct.size() != axes.size() ||
      (!axes.empty() &&
       (*distinct.begin() != 0 || *distinct.rbegin() != static_cast<int64_t>(axes.size()) - 1)))
    return op.reject(5, fmt::format("axes [{}] are not a permutation of {} axes",
                                    fmt::join(axes, ", "), x.rank()));
  TensorType result{x.dtype, {}};
  for (int64_t axis : axes) result.dims.push_back(x.dims[axis]);
  return result;
}

Result<TensorType> infer_slice(const Inference& op) {
  const TensorType& x = op.operands[0];
  const int64_t axis = op.attrs.get<int64_t>(AttrName::axis);
  const int64_t begin = op.attrs.get<int64_t>(AttrName::begin);
  const Dim size = op.attrs.get<Dim>(AttrName::size);
  SINTER_TRY(op.check_axis(axis, x.rank()));
  const Dim extent = x.dims[axis];
  int64_t end = 0;
  bool inside = begin >= 0;
  if (size.is_constant()) {
    const int64_t least =
        extent.is_constant() ? extent.constant() : op.symbols[extent.symbol().index].low;
    inside &= !__builtin_add_overflow(begin, size.constant(), &end) && end <= least;
  } else {
    const bool known =
        !extent.is_constant() &&
        (size == extent || op.symbols[size.symbol().index].at_most == extent.symbol());
    inside &= begin == 0 && known;
  }
  if (!inside)
    return op.reject(6, fmt::format("elements {} to {} + {} of an extent of {}", begin, begin,
                                    to_string(size, op.symbols), to_string(extent, op.symbols)));
  TensorType result = x;
  result.dims[axis] = size;
  return result;
}

Result<TensorType> infer_broadcast(const Inference& op) {
  const TensorType& x = op.operands[0];
  const Dims& dims = op.attrs.get<Dims>(AttrName::dims);
  const auto common = broadcast_dims(x.dims, dims);
  if (!common || *common != dims)
    return op.reject(7, fmt::format("{} does not broadcast to {}", op.show(x.dims), op.show(dims)));
  return TensorType{x.dtype, dims};
}

}  // namespace sinter
