#include "ir/builder.h"

#include "ir/infer.h"
#include "ir/state_reads.h"

namespace sinter {

std::string Builder::fresh_name() { return fmt::format("{}{}", prefix_, next_++); }

ValueId Builder::leaf(OpKind kind, TensorType type, std::string name) {
  const ValueId id = graph_.add(Op{kind, std::move(type), {}, {}, std::move(name)});
  if (kind == OpKind::input) graph_.inputs.push_back(id);
  return id;
}

ValueId Builder::op(OpKind kind, llvm::ArrayRef<ValueId> operands, Attributes attrs,
                    std::string name) {
  llvm::SmallVector<TensorType, 3> types;
  for (ValueId id : operands) types.push_back(type(id));
  Result<TensorType> result = infer_type(kind, types, attrs, symbols_);
  SINTER_CHECK(result.has_value(), "{} {}: {}", op_info(kind).name, name, result.error().what);
  if (name.empty()) name = fresh_name();
  return graph_.add(Op{kind, std::move(*result), llvm::SmallVector<ValueId, 3>(operands),
                       std::move(attrs), std::move(name)});
}

ValueId Builder::constant(double value, DType dtype, DimsRef dims) {
  return op(OpKind::constant, {},
            Attributes()
                .set(AttrName::dims, Dims(dims))
                .set(AttrName::dtype, dtype)
                .set(AttrName::value, value));
}

ValueId Builder::cast(ValueId x, DType dtype, std::string name) {
  if (type(x).dtype == dtype) return x;
  return op(OpKind::cast, {x}, Attributes().set(AttrName::dtype, dtype), std::move(name));
}

ValueId Builder::reshape(ValueId x, DimsRef dims, std::string name) {
  if (DimsRef(type(x).dims) == dims) return x;
  return op(OpKind::reshape, {x}, Attributes().set(AttrName::dims, Dims(dims)), std::move(name));
}

ValueId Builder::slice(ValueId x, int64_t axis, int64_t begin, Dim size, std::string name) {
  return op(
      OpKind::slice, {x},
      Attributes().set(AttrName::axis, axis).set(AttrName::begin, begin).set(AttrName::size, size),
      std::move(name));
}

ValueId Builder::transpose(ValueId x, std::vector<int64_t> axes, std::string name) {
  return op(OpKind::transpose, {x}, Attributes().set(AttrName::axes, std::move(axes)),
            std::move(name));
}

ValueId Builder::broadcast(ValueId x, DimsRef dims, std::string name) {
  if (DimsRef(type(x).dims) == dims) return x;
  return op(OpKind::broadcast, {x}, Attributes().set(AttrName::dims, Dims(dims)), std::move(name));
}

ValueId Builder::iota(DimsRef dims, int64_t axis) {
  return op(OpKind::iota, {},
            Attributes().set(AttrName::axis, axis).set(AttrName::dims, Dims(dims)));
}

ValueId Builder::reduce(OpKind kind, ValueId x, std::vector<int64_t> axes, std::string name) {
  return op(kind, {x}, Attributes().set(AttrName::axes, std::move(axes)), std::move(name));
}

bool Builder::may_read(ValueId value) const {
  return !StateWriters(graph_).writer_of(value).valid();
}

}  // namespace sinter
