// The type of an op's result: constraints that every op has, and the choice of its own rule, which
// stands in infer_*.cpp.
//
// Constraints, by number; the number stands in the error. A number is listed once.
//   C1   operand count, an order of the op, and attributes that are required and known; any_range,
//        empty_zero and checked are 0 or 1
//   C2   elementwise: dims broadcast (NumPy)
//   C3   elementwise: operands of one element type that the op's domain allows
//   C4   reshape: the number of elements stays, for all values of the symbols
//   C5   transpose: axes are a permutation
//   C6   slice: 0 <= begin, begin + size <= extent; a symbolic size has begin 0 and is the extent
//        or at most it
//   C7   broadcast: the operand's dims broadcast to `dims`
//   C8   axis in 0 .. rank-1; axes ascending and distinct
//   C10  concat: operands differ in nothing but a constant extent along `axis`
//   C11  embedding: table [V ..., D], ids i32 of rank >= 1; gather: index i32, the extents of x but
//   along
//        `axis`
//   C12  kv_append: state [R, ...], value [N, ...] of the same type but for N, slot i32 [N]
//   C13  reduce, norm, softmax: float operands of rank >= 1; reduce: of i32 too
//   C14  norm: weight and bias [D] of the operand's element type, D a constant >= 1
//   C15  rope: x [N, H, hd], cos and sin [N, rotary/2] of one float type; rotary even, 2 .. hd
//   C16  linear: x [..., K], w [M, K], bias [M], one float type, or w f32, K and M constants; gemv:
//   x
//        of rank 2 and at most 8 rows, M and K >= 1, K a multiple of 8, splits a power of two; gemv
//        and tiled_linear: w of the type of x, a result of that type or f32
//   C17  einsum: a spec of the form "ab,bc->ac", extents that agree, one float type
//   C18  attention: q [..., N, heads*hd], keys [..., R, kv_heads*hd], values [..., R, kv_heads*vd]
//        of one float type and constant widths, first and slot i32 [..., N], a mask of i1 or a
//        float type with the axes [..., heads, N, R] or 1 in their place; attention_softmax: scores
//        f32 [..., N, K], first and slot that broadcast to [..., N] and end in N, a mask that
//        broadcasts to the scores; kv_heads divides heads; scale finite; softcap > 0, finite;
//        window >= 1; sink >= 0, an i32
//   C19  dims, literal elements and constants: dims are sizes, one value per element; eps > 0
//   C20  the result has at most 2^48 bytes and elements for all values of the symbols
//   C21  order decode_attention: no dropout, 1 .. 8 splits, a power of two of streams, heads of 1
//   .. 256
//        elements, a mask that repeats along all leading axes or along none; sample: logits [N, V]
//        of a float type, V a constant, 1 .. 2^20; temperature and top_p f32 [N], the others i32
//        [N]
//   C33  place: begin + the part's extent along `axis` is at most size, all constants; a base of
//        the type of the result
//   C42  store: a value of the state's type
// Constraints C22 to C32, C34 to C36 and C38 to C41 and C43 are listed with the rules of the
// families' ops, kernels/*/op.cpp, and C37 in ir/infer_experts.cpp.
#include "ir/infer.h"

#include "ir/inference.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

/// The order, if there is one, is one of the op's.
Status check_order(const Inference& op, std::optional<Order> order) {
  if (!order || order_info(*order).op == op.kind) return {};
  return fail(fmt::format("{}: {} is an order of {} (C1)", op_info(op.kind).name, to_string(*order),
                          op_info(order_info(*order).op).name));
}

Status check_operand_count(const Inference& op, std::optional<Order> order) {
  const int count = static_cast<int>(op.operands.size());
  const int least = op_info(op.kind).min_operands, most = max_operands(op.kind, order);
  if (least <= count && count <= most) return {};
  return op.reject(1, least == most
                          ? fmt::format("takes {} operands, got {}", least, count)
                          : fmt::format("takes {} to {} operands, got {}", least, most, count));
}

/// Attributes are known, and those that are required are there.
Status check_attributes(const Inference& op) {
  if (const auto missing = missing_attribute(op.kind, op.attrs))
    return op.reject(1, fmt::format("attribute {} is missing", to_string(*missing)));
  for (const auto& [name, value] : op.attrs)
    if (!may_have(op.kind, op.attrs, name))
      return op.reject(1, fmt::format("has no attribute {}", to_string(name)));
  for (AttrName flag : {AttrName::any_range, AttrName::empty_zero, AttrName::checked})
    if (op.attrs.has(flag))
      if (const auto value = op.attrs.get<int64_t>(flag); value != 0 && value != 1)
        return op.reject(1, fmt::format("{} is {}, must be 0 or 1", to_string(flag), value));
  return {};
}

Result<TensorType> infer_leaf(const Inference& op) {
  return op.reject(1, "the type of a leaf is given, not inferred");
}

/// The rule of each op, by OpKind. An op without its rule does not link.
constexpr InferenceRule* kInferenceRules[] = {
#define SINTER_OP(name, op_class, ...)                \
  [] {                                                \
    if constexpr (OpClass::op_class == OpClass::leaf) \
      return infer_leaf;                              \
    else                                              \
      return infer_##name;                            \
  }(),
#define SINTER_ELEMENTWISE(...) infer_elementwise,
#include "ir/ops.def"
};

/// By Order. An order without its constraints does not link.
constexpr OrderConstraints* kOrderConstraints[] = {
#define SINTER_ORDER(name, ...) check_##name,
#include "ir/orders.def"
};

}  // namespace

std::string_view Inference::name() const {
  const std::optional<Order> order = order_of(attrs);
  return order ? to_string(*order) : op_info(kind).name;
}

Status Inference::check_axis(int64_t axis, size_t rank) const {
  if (axis < 0 || axis >= static_cast<int64_t>(rank))
    return reject(8, fmt::format("axis {} of an operand of rank {}", axis, rank));
  return {};
}

Status Inference::check_axes(llvm::ArrayRef<int64_t> axes, size_t rank) const {
  for (size_t i = 0; i < axes.size(); ++i) {
    SINTER_TRY(check_axis(axes[i], rank));
    if (i > 0 && axes[i] <= axes[i - 1])
      return reject(8, fmt::format("axes must ascend, got {} after {}", axes[i], axes[i - 1]));
  }
  return {};
}

Result<TensorType> infer_type(OpKind kind, llvm::ArrayRef<TensorType> operands,
                              const Attributes& attrs, llvm::ArrayRef<Symbol> symbols) {
  const Inference op{kind, operands, attrs, symbols};
  const std::optional<Order> order = order_of(attrs);
  SINTER_TRY(check_order(op, order));
  SINTER_TRY(check_operand_count(op, order));
  SINTER_TRY(check_attributes(op));
  SINTER_LET(type, kInferenceRules[static_cast<size_t>(kind)](op));
  if (order) SINTER_TRY(kOrderConstraints[static_cast<size_t>(*order)](op, type));
  if (volume(type.dims).upper_bound(symbols) > max_elements(type.dtype))
    return op.reject(20, fmt::format("{} has more than 2^48 bytes", op.show(type)));
  return type;
}

}  // namespace sinter
