// linear and einsum.
#include "ir/infer.h"
#include "ir/inference.h"

namespace sinter {

Result<TensorType> infer_linear(const Inference& op) {
  const TensorType &x = op.operands[0], &w = op.operands[1];
  const bool fits = x.rank() >= 1 && w.rank() == 2 && is_float(x.dtype) &&
                    (w.dtype == x.dtype || w.dtype == DType::f32) && x.dims.back() == w.dims[1] &&
                    w.dims[0].is_constant() && w.dims[1].is_constant() &&
                    (op.operands.size() == 2 || op.operands[2] == TensorType{x.dtype, {w.dims[0]}});
  if (!fits)
    return op.reject(
        16, fmt::format("x {}, w {}{}", op.show(x), op.show(w),
                        op.operands.size() == 3 ? ", bias " + op.show(op.operands[2]) : ""));
  TensorType result = x;
  result.dims.back() = w.dims[0];
  if (!op.attrs.has(AttrName::dtype)) return result;
  result.dtype = op.attrs.get<DType>(AttrName::dtype);
  if (result.dtype != x.dtype && result.dtype != DType::f32)
    return op.reject(16, fmt::format("x {}, the result {}: must be of the operands' type or f32",
                                     op.show(x), op.show(result)));
  return result;
}

Result<TensorType> infer_einsum(const Inference& op) {
  const TensorType &a = op.operands[0], &b = op.operands[1];
  SINTER_LET(spec, parse_einsum(op.attrs.get<std::string>(AttrName::spec)));
  size_t a_rank = 0, b_rank = 0, rank = 0;
  for (const EinsumAxis& axis : spec.axes) {
    a_rank += axis.a >= 0;
    b_rank += axis.b >= 0;
    rank += axis.result >= 0;
  }
  if (a_rank != a.rank() || b_rank != b.rank() || a.dtype != b.dtype || !is_float(a.dtype))
    return op.reject(17,
                     fmt::format("\"{}\" of {} and {}", op.attrs.get<std::string>(AttrName::spec),
                                 op.show(a), op.show(b)));
  TensorType result{a.dtype, Dims(rank)};
  if (op.attrs.has(AttrName::dtype)) result.dtype = op.attrs.get<DType>(AttrName::dtype);
  if (!is_float(result.dtype)) return op.reject(17, "the result must be of a float type");
  for (const EinsumAxis& axis : spec.axes) {
    const Dim extent = axis.a >= 0 ? a.dims[axis.a] : b.dims[axis.b];
    if (axis.b >= 0 && b.dims[axis.b] != extent)
      return op.reject(
          17, fmt::format("axis '{}' is {} in one operand and {} in the other", axis.letter,
                          to_string(extent, op.symbols), to_string(b.dims[axis.b], op.symbols)));
    if (axis.result >= 0) result.dims[axis.result] = extent;
  }
  return result;
}

Result<EinsumSpec> parse_einsum(std::string_view text) {
  const auto reject = [&](std::string_view why) {
    return fail(fmt::format("einsum: spec \"{}\": {} (C17)", printable(text), why));
  };
  EinsumSpec spec;
  int part = 0, position = 0;  // part 0: a, 1: b, 2: result
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',' && part == 0) {
      part = 1, position = 0;
    } else if (c == '-' && part == 1 && i + 1 < text.size() && text[i + 1] == '>') {
      part = 2, position = 0, ++i;
    } else if (c >= 'a' && c <= 'z') {
      auto at = llvm::find_if(spec.axes, [&](const EinsumAxis& axis) { return axis.letter == c; });
      if (at == spec.axes.end()) at = spec.axes.insert(spec.axes.end(), EinsumAxis{c, -1, -1, -1});
      int& slot = part == 0 ? at->a : part == 1 ? at->b : at->result;
      if (slot >= 0) return reject(fmt::format("'{}' stands twice in one place", c));
      slot = position++;
    } else {
      return reject(fmt::format("unexpected character at {}", i));
    }
  }
  if (part != 2) return reject("it is not of the form \"ab,bc->ac\"");
  for (const EinsumAxis& axis : spec.axes)
    if ((axis.a >= 0) + (axis.b >= 0) + (axis.result >= 0) < 2)
      return reject(fmt::format("'{}' stands in one place only", axis.letter));
  return spec;
}

}  // namespace sinter
