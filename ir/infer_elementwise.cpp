// The types of ops that compute element by element: broadcasting, element types, conversions.
#include "ir/infer.h"
#include "ir/inference.h"

namespace sinter {

Result<TensorType> infer_elementwise(const Inference& op) {
  const OpInfo& info = op_info(op.kind);
  Dims dims = op.operands[0].dims;
  for (const TensorType& operand : op.operands) {
    if (operand.dtype != op.operands[0].dtype)
      return op.reject(3, fmt::format("operands of types {} and {}; cast one",
                                      to_string(op.operands[0].dtype), to_string(operand.dtype)));
    const auto common = broadcast_dims(dims, operand.dims);
    if (!common)
      return op.reject(2, fmt::format("shapes {} and {} do not broadcast", op.show(dims),
                                      op.show(operand.dims)));
    dims = *common;
  }
  const DType dtype = op.operands[0].dtype;
  const auto allowed = [&] {
    switch (info.domain) {
      case OpInfo::Domain::real:
        return is_float(dtype);
      case OpInfo::Domain::number:
        return is_float(dtype) || is_integer(dtype);
      case OpInfo::Domain::integer:
        return is_integer(dtype);
      case OpInfo::Domain::truth:
        return dtype == DType::i1;
    }
    SINTER_CHECK(false, "domain");
  };
  if (!allowed()) return op.reject(3, fmt::format("not defined for {}", to_string(dtype)));
  return TensorType{info.result == OpInfo::Result::truth ? DType::i1 : dtype, dims};
}

Result<TensorType> infer_where(const Inference& op) {
  if (op.operands[0].dtype != DType::i1 || op.operands[1].dtype != op.operands[2].dtype)
    return op.reject(3,
                     fmt::format("needs i1 and two operands of one type, got {}, {}, {}",
                                 to_string(op.operands[0].dtype), to_string(op.operands[1].dtype),
                                 to_string(op.operands[2].dtype)));
  auto dims = broadcast_dims(op.operands[0].dims, op.operands[1].dims);
  if (dims) dims = broadcast_dims(*dims, op.operands[2].dims);
  if (!dims)
    return op.reject(
        2, fmt::format("shapes {}, {} and {} do not broadcast", op.show(op.operands[0].dims),
                       op.show(op.operands[1].dims), op.show(op.operands[2].dims)));
  return TensorType{op.operands[1].dtype, *dims};
}

Result<TensorType> infer_cast(const Inference& op) {
  return TensorType{op.attrs.get<DType>(AttrName::dtype), op.operands[0].dims};
}

Result<TensorType> infer_copy(const Inference& op) { return op.operands[0]; }

std::optional<Dims> broadcast_dims(DimsRef a, DimsRef b) {
  if (a.size() < b.size()) std::swap(a, b);
  Dims dims(a);
  const size_t lead = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    if (dims[lead + i] == b[i] || b[i].is(1)) continue;
    if (!dims[lead + i].is(1)) return std::nullopt;
    dims[lead + i] = b[i];
  }
  return dims;
}

}  // namespace sinter
