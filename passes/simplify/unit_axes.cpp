#include "passes/simplify/unit_axes.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLExtras.h>

#include "ir/cheap_ops.h"
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

class UnitAxes {
 public:
  UnitAxes(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), builder_(builder), rewriter_(rewriter), small_(from.size()) {
    for (ValueId id : from.outputs) {
      outputs_.insert(id.index);
      const DimsRef dims = from[id].type.dims;
      keeps_first_ |=
          from[root_of(from, id)].kind != OpKind::linear && has_unit_axes(dims) && dims[0].is(1);
    }
  }

  bool run() {
    bool found = false;
    rewriter_.rewrite([&](ValueId id, Op op) {
      ValueId& small = small_[id.index];
      if (!outputs_.contains(id.index)) small = without_unit_axes(from_[id]);
      if (!small.valid() || op_class(op) == OpClass::view) return rewriter_.add(std::move(op));
      found = true;
      return fit(small, op.type.dims);
    });
    return found;
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
    const DimsRef dims = op.type.dims;
    const AxisList kept = kept_axes(dims);
    if (op.kind == OpKind::reduce_sum || op.kind == OpKind::reduce_max) return reduction(op);
    if (op.kind == OpKind::transpose) return transposition(op);
    if (op.kind == OpKind::slice) return part(op);
    if (kept.size() == dims.size()) return {};
    if (has_elementwise_form(op)) return per_element(op, kept);
    switch (op.kind) {
      case OpKind::reshape:
        return of(op.operands[0], chosen(dims, kept, dims.size()));
      case OpKind::iota:
        return positions(op, kept);
      case OpKind::concat:
        return concatenation(op, kept);
      case OpKind::layer_norm:
      case OpKind::rms_norm:
      case OpKind::softmax:
        return of_rows(op, 0, kept);
      case OpKind::linear:
        return is_without_order(op, op.kind) ? of_rows(op, 0, kept) : ValueId();
      case OpKind::embedding:
        return embedding(op, kept);
      default:
        return {};
    }
  }

  ValueId per_element(const Op& op, const AxisList& kept) {
    const DimsRef dims = op.type.dims;
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands)
      operands.push_back(of(operand, chosen(from_[operand].type.dims, kept, dims.size())));
    Attributes attrs = op.attrs;
    if (op.kind != OpKind::broadcast)
      return builder_.op(op.kind, operands, std::move(attrs), op.name);
    attrs.set(AttrName::dims, chosen(dims, kept, dims.size()));
    return builder_.op(op.kind, operands, std::move(attrs));
  }

  ValueId reduction(const Op& op) {
    const DimsRef dims = from_[op.operands[0]].type.dims;
    const AxisList kept = kept_axes(dims);
    if (kept.size() == dims.size()) return {};
    std::vector<int64_t> axes = places(op.attrs.get<std::vector<int64_t>>(AttrName::axes), kept);
    if (axes.empty()) return {};
    const ValueId x = of(op.operands[0], chosen(dims, kept, dims.size()));
    return builder_.reduce(op.kind, x, std::move(axes), op.name);
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
    return fit(builder_.transpose(x, std::move(axes)), result);
  }

  ValueId part(const Op& op) {
    const DimsRef dims = from_[op.operands[0]].type.dims;
    const AxisList kept = kept_axes(dims);
    if (kept.size() == dims.size()) return {};
    const std::vector<int64_t> axis = places({op.attrs.get<int64_t>(AttrName::axis)}, kept);
    if (axis.empty()) return {};
    const ValueId x = of(op.operands[0], chosen(dims, kept, dims.size()));
    Attributes attrs = op.attrs;
    return builder_.op(op.kind, {x}, std::move(attrs.set(AttrName::axis, axis[0])));
  }

  ValueId positions(const Op& op, const AxisList& kept) {
    const std::vector<int64_t> axis = places({op.attrs.get<int64_t>(AttrName::axis)}, kept);
    if (axis.empty()) return {};
    Attributes attrs = op.attrs;
    attrs.set(AttrName::axis, axis[0]);
    attrs.set(AttrName::dims, chosen(op.type.dims, kept, op.type.rank()));
    return builder_.op(op.kind, {}, std::move(attrs), op.name);
  }

  ValueId concatenation(const Op& op, const AxisList& kept) {
    const std::vector<int64_t> axis = places({op.attrs.get<int64_t>(AttrName::axis)}, kept);
    if (axis.empty()) return {};
    llvm::SmallVector<ValueId, 4> parts;
    for (ValueId operand : op.operands)
      parts.push_back(of(operand, chosen(from_[operand].type.dims, kept, op.type.rank())));
    return builder_.op(op.kind, parts, Attributes().set(AttrName::axis, axis[0]), op.name);
  }

  /// An op whose operand k has the rows of the result.
  ValueId of_rows(const Op& op, size_t k, const AxisList& kept) {
    const DimsRef dims = from_[op.operands[k]].type.dims;
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) operands.push_back(rewriter_[operand]);
    operands[k] = of(op.operands[k], chosen(dims, kept, dims.size()));
    return builder_.op(op.kind, operands, op.attrs, op.name);
  }

  ValueId embedding(const Op& op, const AxisList& kept) {
    const AxisList rows(llvm::drop_end(kept));
    const ValueId ids = op.operands[1];
    const DimsRef dims = from_[ids].type.dims;
    return builder_.op(op.kind,
                       {rewriter_[op.operands[0]], of(ids, chosen(dims, rows, dims.size()))},
                       op.attrs, op.name);
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
    return fit(small.valid() ? small : rewriter_[id], dims);
  }

  ValueId fit(ValueId x, DimsRef dims) {
    return DimsRef(builder_.type(x).dims) == dims ? x : builder_.reshape(x, dims);
  }

  const Graph& from_;
  Builder& builder_;
  GraphRewriter& rewriter_;
  std::vector<ValueId> small_;  // by old value
  llvm::DenseSet<uint32_t> outputs_;
  // An output is [1, N, D]. Its rows differ from the rows of [N, D], so that no value loses its
  // first axis.
  bool keeps_first_ = false;
};

}  // namespace

bool unit_axes(Module& module) {
  return rewrite_graphs(
      module, [](const Op& op) { return has_unit_axes(op.type.dims); },
      [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        return UnitAxes(graph, builder, rewriter).run();
      });
}

}  // namespace sinter
