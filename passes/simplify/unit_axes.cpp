// Extents of 1 between the axes of a value go, so that values of the same rows have the same axes.
//
//   %n = mul %x, %c : [8, 1, 512]                 =>   %n = mul %x', %c' : [8, 512]
//   %y = linear %n, %w : [8, 1, 64]                    %y = linear %n, %w : [8, 64]
//   %p = transpose %y {axes = [1, 0, 2]}               uses of %p read %y
//
// A decoder's step has one token of each sequence: its values are [B, 1, D], its queries [B, 1, H,
// D] and, behind a transposition that moves nothing, [B, H, 1, D]. A value keeps its last axis and,
// if it has two axes, at least two. Outputs, and ops whose axes have meanings of their own, such as
// `attention` and `einsum`, keep all axes; where an output [1, ...] is no product, all values keep
// their first axis, so that those that it is computed from have its rows.
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLExtras.h>

#include "ir/cheap_ops.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

using AxisList = llvm::SmallVector<size_t, 8>;

bool has_unit_axes(DimsRef dims) {
  return dims.size() > 2 && llvm::any_of(dims.drop_back(), [](Dim dim) { return dim.is(1); });
}

/// These axes of the dims; of dims that lack leading axes, those that they have.
Dims chosen(DimsRef dims, const AxisList& axes, size_t rank) {
  const size_t missing = rank - dims.size();
  Dims result;
  for (size_t axis : axes)
    if (axis >= missing) result.push_back(dims[axis - missing]);
  return result;
}

class UnitAxes : RewriteRule {
 public:
  UnitAxes(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : RewriteRule(from, builder, rewriter), small_(from.size()) {
    for (ValueId id : from.outputs) {
      outputs_.insert(id.index);
      const DimsRef dims = from[id].type.dims;
      keeps_first_ |=
          from[root_of(from, id)].kind != OpKind::linear && has_unit_axes(dims) && dims[0].is(1);
    }
  }

  std::optional<ValueId> replaced(ValueId id, const Op& op) {
    ValueId& small = small_[id.index];
    if (!outputs_.contains(id.index)) small = without_unit_axes(from_[id]);
    if (!small.valid() || op_class(op) == OpClass::view) return std::nullopt;
    return builder_.reshape(small, op.type.dims);
  }

 private:
  /// The axes of a value that stay: all but extents of 1 before the last axis, and at least two.
  AxisList kept_axes(DimsRef dims) const {
    AxisList kept;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (!dims[axis].is(1) || axis + 1 == dims.size() || (axis == 0 && keeps_first_))
        kept.push_back(axis);
    if (kept.size() == 1 && dims.size() > 1) kept.insert(kept.begin(), 0);
    return kept;
  }

  /// The op without unit axes; invalid: it keeps all. A view stands beside the old one, and has no
  /// name.
  ValueId without_unit_axes(const Op& op) {
    if (op.kind == OpKind::transpose) return transposition(op);
    const bool is_reduction = op.kind == OpKind::reduce_sum || op.kind == OpKind::reduce_max;
    const bool has_operand_axes = is_reduction || op.kind == OpKind::slice;
    const DimsRef dims = has_operand_axes ? from_[op.operands[0]].type.dims : op.type.dims;
    const AxisList kept = kept_axes(dims);
    if (kept.size() == dims.size()) return {};
    if (has_operand_axes || has_elementwise_form(op)) return on_axes(op, dims, kept);
    switch (op.kind) {
      case OpKind::reshape:
        return of(op.operands[0], chosen(dims, kept, dims.size()));
      case OpKind::iota:
      case OpKind::concat:
      case OpKind::layer_norm:
      case OpKind::rms_norm:
      case OpKind::softmax:
        return on_axes(op, dims, kept);
      case OpKind::linear:
        return is_without_order(op, op.kind) ? of_rows(op, 0, kept) : ValueId();
      case OpKind::embedding:
        return of_rows(op, 1, AxisList(llvm::drop_end(kept)));
      default:
        return {};
    }
  }

  /// An op over `dims`, of which its operands may lack leading axes.
  ValueId on_axes(const Op& op, DimsRef dims, const AxisList& kept) {
    Attributes attrs = op.attrs;
    if (attrs.has(AttrName::dims)) attrs.set(AttrName::dims, chosen(dims, kept, dims.size()));
    if (attrs.has(AttrName::axes)) {
      attrs.set(AttrName::axes, places(attrs.get<std::vector<int64_t>>(AttrName::axes), kept));
      if (attrs.get<std::vector<int64_t>>(AttrName::axes).empty()) return {};
    }
    if (attrs.has(AttrName::axis)) {
      const std::vector<int64_t> axis = places({attrs.get<int64_t>(AttrName::axis)}, kept);
      if (axis.empty()) return {};
      attrs.set(AttrName::axis, axis[0]);
    }
    llvm::SmallVector<ValueId, 4> operands;
    for (ValueId operand : op.operands)
      operands.push_back(of(operand, chosen(from_[operand].type.dims, kept, dims.size())));
    return builder_.op(op.kind, operands, std::move(attrs),
                       op_class(op) == OpClass::view ? "" : op.name);
  }

  /// An op whose operand k has the rows of the result, with these axes.
  ValueId of_rows(const Op& op, size_t k, const AxisList& axes) {
    const DimsRef dims = from_[op.operands[k]].type.dims;
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) operands.push_back(rewriter_[operand]);
    operands[k] = of(op.operands[k], chosen(dims, axes, dims.size()));
    return builder_.op(op.kind, operands, op.attrs, op.name);
  }

  /// A transposition of the axes that are not 1; none if they keep their order.
  ValueId transposition(const Op& op) {
    const DimsRef dims = from_[op.operands[0]].type.dims;
    if (!has_unit_axes(dims) && !has_unit_axes(op.type.dims)) return {};
    AxisList wide;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (!dims[axis].is(1)) wide.push_back(axis);
    std::vector<int64_t> axes = places(op.attrs.get<std::vector<int64_t>>(AttrName::axes), wide);
    const Dims result = chosen(op.type.dims, kept_axes(op.type.dims), op.type.rank());
    if (llvm::is_sorted(axes)) return of(op.operands[0], result);
    if (result.size() == op.type.rank()) return {};
    const ValueId x = of(op.operands[0], chosen(dims, wide, dims.size()));
    return builder_.reshape(builder_.transpose(x, std::move(axes)), result);
  }

  /// For each of these axes that is kept, which of the kept ones it is.
  static std::vector<int64_t> places(llvm::ArrayRef<int64_t> axes, const AxisList& kept) {
    std::vector<int64_t> result;
    for (int64_t axis : axes)
      if (const auto at = llvm::find(kept, static_cast<size_t>(axis)); at != kept.end())
        result.push_back(at - kept.begin());
    return result;
  }

  /// The value that stands for one of the old graph, with these dims.
  ValueId of(ValueId id, DimsRef dims) {
    const ValueId small = small_[id.index];
    return builder_.reshape(small.valid() ? small : rewriter_[id], dims);
  }

  std::vector<ValueId> small_;  // by old value
  llvm::DenseSet<uint32_t> outputs_;
  // An output is [1, N, D]. Its rows differ from the rows of [N, D], so that no value loses its
  // first axis.
  bool keeps_first_ = false;
};

}  // namespace

bool unit_axes(Module& module) {
  return replace_ops<UnitAxes>(module, [](const Op& op) { return has_unit_axes(op.type.dims); });
}

}  // namespace sinter
