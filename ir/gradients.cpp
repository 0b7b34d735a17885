// Differentiation of a graph: the choice of an op's rule, which stands in gradient_*.cpp, and the
// sum over the readers of a value.
#include "ir/gradients.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/gradient.h"
#include "ir/infer.h"

namespace sinter {
namespace {

Result<ValueId> passes_no_gradient(OpGradient& d, size_t) {
  SINTER_CHECK(false, "{} has no operand or result of a float type", op_info(d.op.kind).name);
}

Result<ValueId> is_composite(OpGradient& d, size_t) {
  return fail(fmt::format("op {} is a composite", op_info(d.op.kind).name), "%" + d.op.name,
              "decompose the graph first");
}

/// The rule of each op, by OpKind. An op without its rule does not link.
constexpr GradientRule* kGradientRules[] = {
#define SINTER_OP(name, op_class, ...)                                                           \
  [] {                                                                                           \
    if constexpr (OpClass::op_class == OpClass::leaf || OpClass::op_class == OpClass::generator) \
      return passes_no_gradient;                                                                 \
    else if constexpr (OpClass::op_class == OpClass::composite)                                  \
      return is_composite;                                                                       \
    else                                                                                         \
      return gradient_##name;                                                                    \
  }(),
#define SINTER_ELEMENTWISE(name, operands, result, domain, ...)        \
  [] {                                                                 \
    if constexpr (OpInfo::Result::result == OpInfo::Result::truth ||   \
                  OpInfo::Domain::domain == OpInfo::Domain::integer || \
                  OpInfo::Domain::domain == OpInfo::Domain::truth)     \
      return passes_no_gradient;                                       \
    else                                                               \
      return gradient_##name;                                          \
  }(),
#include "ir/ops.def"
};

/// Whether each value up to `output` depends on a wanted one through values of float types.
std::vector<bool> depend_on(llvm::ArrayRef<ValueId> wanted, const Graph& graph, ValueId output) {
  std::vector<bool> depends(output.index + 1);
  for (ValueId id : wanted)
    if (id.index < depends.size()) depends[id.index] = true;
  for (uint32_t i = 0; i < depends.size(); ++i) {
    const Op& op = graph.ops()[i];
    const auto does = [&](ValueId operand) { return depends[operand.index]; };
    if (is_float(op.type.dtype) && llvm::any_of(op.operands, does)) depends[i] = true;
  }
  return depends;
}

ValueId sum_of(Builder& b, llvm::ArrayRef<ValueId> parts, DType dtype) {
  ValueId sum = parts.front();
  for (ValueId part : parts.drop_front()) {
    sum = b.cast(sum, DType::f32);
    sum = b.add(sum, b.cast(part, DType::f32));
  }
  return b.cast(sum, dtype);
}

Status check_types(const Builder& b, ValueId output, ValueId gradient,
                   llvm::ArrayRef<ValueId> wanted) {
  const auto show = [&](ValueId id) { return to_string(b.type(id), b.symbols()); };
  if (b.type(gradient) != b.type(output) || !is_float(b.type(output).dtype))
    return fail(fmt::format("output {} and its gradient {}: must have one type, a float type",
                            show(output), show(gradient)));
  for (ValueId id : wanted)
    if (!is_float(b.type(id).dtype))
      return fail(fmt::format("{} has no gradient, only values of float types do", show(id)));
  return {};
}

}  // namespace

tl::unexpected<Error> OpGradient::has_none(std::string_view why) const {
  return fail(
      fmt::format("op {} has no gradient{}{}", op_info(op.kind).name, why.empty() ? "" : ": ", why),
      "%" + op.name);
}

Result<ValueId> OpGradient::try_op(OpKind kind, llvm::ArrayRef<ValueId> operands,
                                   Attributes attrs) {
  llvm::SmallVector<TensorType, 3> types;
  for (ValueId id : operands) types.push_back(b.type(id));
  const Result<TensorType> type = infer_type(kind, types, attrs, b.symbols());
  if (!type) return has_none(type.error().what);
  return b.op(kind, operands, std::move(attrs));
}

ValueId sum_to(Builder& b, ValueId x, DimsRef dims) {
  const Dims from = b.type(x).dims;
  const size_t lead = from.size() - dims.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < from.size(); ++i)
    if (!from[i].is(1) && (i < lead || dims[i - lead].is(1)))
      axes.push_back(static_cast<int64_t>(i));
  if (!axes.empty()) x = b.reduce(OpKind::reduce_sum, b.cast(x, DType::f32), std::move(axes));
  return lead == 0 ? x : b.reshape(x, dims);
}

std::optional<Dim> as_dim(const SymExpr& extent) {
  if (extent.overflowed()) return std::nullopt;
  if (extent.is_constant()) return Dim(extent.constant());
  const auto& terms = extent.terms();
  if (terms.size() != 1 || terms[0].coefficient != 1 || terms[0].symbols.size() != 1)
    return std::nullopt;
  return Dim(terms[0].symbols[0]);
}

Result<std::vector<ValueId>> add_gradients(Builder& b, ValueId output, ValueId gradient,
                                           llvm::ArrayRef<ValueId> wanted) {
  SINTER_TRY(check_types(b, output, gradient, wanted));
  const std::vector<bool> depends = depend_on(wanted, b.graph(), output);
  std::vector<llvm::SmallVector<ValueId, 2>> parts(depends.size());
  parts[output.index].push_back(gradient);
  std::vector<ValueId> gradients(depends.size());
  for (uint32_t i = output.index + 1; i-- > 0;) {
    if (!depends[i] || parts[i].empty()) continue;
    OpGradient d{b, b.graph().ops()[i], ValueId{i}, {}};
    d.gradient = gradients[i] = sum_of(b, parts[i], d.op.type.dtype);
    for (size_t k = 0; k < d.op.operands.size(); ++k) {
      const ValueId operand = d.op.operands[k];
      if (!depends[operand.index]) continue;
      SINTER_LET(part, kGradientRules[static_cast<size_t>(d.op.kind)](d, k));
      if (part.valid()) parts[operand.index].push_back(sum_to(b, part, d.type(k).dims));
    }
  }
  std::vector<ValueId> results;
  for (ValueId id : wanted) {
    const bool reached = id.index < gradients.size() && gradients[id.index].valid();
    const TensorType type = b.type(id);
    results.push_back(reached ? gradients[id.index] : b.constant(0, type.dtype, type.dims));
  }
  return results;
}

}  // namespace sinter
