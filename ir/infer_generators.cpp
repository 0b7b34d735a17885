// Values that are computed from attributes alone.
#include "ir/inference.h"
#include "ir/sym_expr.h"

namespace sinter {

/// The type that the attributes give.
Result<TensorType> infer_constant(const Inference& op) {
  return TensorType{op.attrs.get<DType>(AttrName::dtype), op.attrs.get<Dims>(AttrName::dims)};
}

Result<TensorType> infer_file(const Inference& op) { return infer_constant(op); }

Result<TensorType> infer_literal(const Inference& op) {
  SINTER_LET(type, infer_constant(op));
  const auto& values = op.attrs.get<std::vector<Number>>(AttrName::values);
  const SymExpr count = volume(type.dims);
  if (!count.is_constant() || count.constant() != static_cast<int64_t>(values.size()))
    return op.reject(19, fmt::format("{} values for {}", values.size(), op.show(type.dims)));
  return type;
}

Result<TensorType> infer_iota(const Inference& op) {
  const Dims& dims = op.attrs.get<Dims>(AttrName::dims);
  SINTER_TRY(op.check_axis(op.attrs.get<int64_t>(AttrName::axis), dims.size()));
  return TensorType{DType::i32, dims};
}

}  // namespace sinter
