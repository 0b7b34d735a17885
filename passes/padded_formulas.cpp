#include "passes/padded_formulas.h"

#include <llvm/ADT/STLExtras.h>

#include <map>

#include "ir/sym_expr.h"
#include "passes/cheap_ops.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr int kMostPaddedOps = 32;  // of a formula

class PaddedFormulas {
 public:
  PaddedFormulas(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), b_(builder), rewriter_(rewriter), readers_(readers_of(from)) {}

  /// False: nothing changed.
  bool run() {
    rewriter_.rewrite([&](ValueId id, Op op) {
      if (!is_padded(from_[id])) return rewriter_.add(std::move(op));
      found_ = true;
      return chosen(from_[id]);
    });
    return found_;
  }

 private:
  /// An axis, counted from the last one: operands that broadcast lack leading axes.
  static std::optional<size_t> axis_of(DimsRef dims, size_t behind) {
    if (dims.size() <= behind) return std::nullopt;
    return dims.size() - 1 - behind;
  }
  static bool lacks(DimsRef dims, size_t behind) {
    const std::optional<size_t> axis = axis_of(dims, behind);
    return !axis || dims[*axis].is(1);
  }

  bool is_padded(const Op& op) {
    if (op.kind != OpKind::concat || op.operands.size() != 2) return false;
    const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
    const ValueId value = op.operands[0];
    if (!op.type.dims[axis].is_constant() || !from_[value].type.dims[axis].is_constant() ||
        from_[value].type.dims[axis].is(0) ||
        from_[root_of(from_, op.operands[1])].kind != OpKind::constant)
      return false;
    behind_ = op.type.dims.size() - 1 - axis;
    size_ = op.type.dims[axis].constant();
    int ops = 0;
    bool slices = false;
    return is_by_element(from_[value]) && readers_[value.index].size() == 1 &&
           is_wider(value, ops, slices) && slices;
  }

  /// Whether the value can be had for as many elements as the concatenation has.
  bool is_wider(ValueId id, int& ops, bool& slices) const {
    const Op& op = from_[id];
    if (lacks(op.type.dims, behind_)) return true;
    const auto axis = static_cast<int64_t>(*axis_of(op.type.dims, behind_));
    if (is_by_element(op))
      return ++ops <= kMostPaddedOps && llvm::all_of(op.operands, [&](ValueId operand) {
        return is_wider(operand, ops, slices);
      });
    if (op.kind == OpKind::iota) return op.attrs.get<int64_t>(AttrName::axis) == axis;
    const bool slice = op.kind == OpKind::slice && op.attrs.get<int64_t>(AttrName::axis) == axis &&
                       op.attrs.get<int64_t>(AttrName::begin) == 0 &&
                       from_[op.operands[0]].type.dims[static_cast<size_t>(axis)].is(size_);
    slices |= slice;
    return slice;
  }

  ValueId chosen(const Op& op) {
    wider_.clear();
    const DType dtype = DType::i32;
    const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
    const ValueId value = wider(op.operands[0]);
    const double size = static_cast<double>(from_[op.operands[0]].type.dims[axis].constant());
    const ValueId inside = b_.less(positions(), b_.constant(size, dtype));
    const Op& padding = from_[root_of(from_, op.operands[1])];
    const ValueId number =
        b_.op(OpKind::constant, {},
              Attributes()
                  .set(AttrName::dims, Dims())
                  .set(AttrName::dtype, padding.type.dtype)
                  .set(AttrName::value, padding.attrs.get<Number>(AttrName::value)));
    const ValueId result = b_.op(OpKind::where, {inside, value, number});
    b_.graph()[result].name = op.name;
    return result;
  }

  /// Along the axis, behind which extents of 1 stand.
  ValueId positions() {
    Dims dims(behind_ + 1, Dim(1));
    dims[0] = Dim(size_);
    return b_.op(OpKind::iota, {},
                 Attributes().set(AttrName::axis, int64_t{0}).set(AttrName::dims, dims));
  }

  ValueId wider(ValueId id) {
    const Op& op = from_[id];
    if (lacks(op.type.dims, behind_)) return rewriter_[id];
    if (op.kind == OpKind::iota) return positions();
    if (op.kind == OpKind::slice) return rewriter_[op.operands[0]];
    ValueId& made = wider_[id];
    if (made.valid()) return made;
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) operands.push_back(wider(operand));
    return wider_[id] = b_.op(op.kind, operands, op.attrs, op.name);
  }

  const Graph& from_;
  Builder& b_;
  GraphRewriter& rewriter_;
  std::vector<llvm::SmallVector<ValueId, 2>> readers_;
  size_t behind_ = 0;                 // axes behind that of the concatenation
  int64_t size_ = 0;                  // its extent
  std::map<ValueId, ValueId> wider_;  // of the concatenation that is rewritten
  bool found_ = false;
};

}  // namespace

bool padded_formulas(Module& module) {
  return rewrite_graphs(
      module, [](const Op& op) { return op.kind == OpKind::concat; },
      [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        return PaddedFormulas(graph, builder, rewriter).run();
      });
}

}  // namespace sinter
