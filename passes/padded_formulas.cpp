#include "passes/padded_formulas.h"

#include <llvm/ADT/STLExtras.h>

#include <limits>
#include <map>
#include <tuple>

#include "ir/cheap_ops.h"
#include "ir/integers.h"
#include "ir/reduction_order.h"
#include "ir/state_reads.h"
#include "ir/sym_expr.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr int kMaxPaddedOps = 32;  // of a formula

class PaddedFormulas {
 public:
  PaddedFormulas(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), b_(builder), rewriter_(rewriter), readers_(readers_of(from)) {}

  /// False: nothing changed.
  bool run() {
    for (uint32_t i = 0; i < from_.size(); ++i)
      if (is_padded({i})) note_formula(from_.ops()[i].operands[0]);
    rewriter_.rewrite([&](ValueId id, Op op) {
      const Op& old = from_[id];
      if (is_padded(id)) return chosen(old);
      if (is_reduced_row(old)) return reduced(old);
      return rewriter_.add(std::move(op));
    });
    return !sizes_.empty();
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

  bool is_padded(ValueId id) {
    const Op& op = from_[id];
    if (op.kind != OpKind::concat || op.operands.size() != 2) return false;
    const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
    const ValueId value = op.operands[0];
    if (!op.type.dims[axis].is_constant() || !from_[value].type.dims[axis].is_constant() ||
        from_[value].type.dims[axis].is(0) ||
        from_[root_of(from_, op.operands[1])].kind != OpKind::constant)
      return false;
    behind_ = op.type.dims.size() - 1 - axis;
    size_ = op.type.dims[axis].constant();
    at_ = id;
    int ops = 0;
    bool slices = false;
    return is_by_element(from_[value]) && readers_[value.index].size() == 1 &&
           is_wider(value, ops, slices) && slices;
  }

  /// Whether the value can be had for as many elements as the concatenation has.
  bool is_wider(ValueId id, int& ops, bool& slices) const {
    const Op& op = from_[id];
    if (is_overwritten(from_, id, at_)) return false;
    if (lacks(op.type.dims, behind_)) return true;
    const auto axis = static_cast<int64_t>(*axis_of(op.type.dims, behind_));
    if (is_by_element(op))
      return ++ops <= kMaxPaddedOps && llvm::all_of(op.operands, [&](ValueId operand) {
        return is_wider(operand, ops, slices);
      });
    if (op.kind == OpKind::iota) return op.attrs.get<int64_t>(AttrName::axis) == axis;
    const bool slice = op.kind == OpKind::slice && op.attrs.get<int64_t>(AttrName::axis) == axis &&
                       op.attrs.get<int64_t>(AttrName::begin) == 0 &&
                       from_[op.operands[0]].type.dims[static_cast<size_t>(axis)].is(size_);
    slices |= slice;
    return slice;
  }

  /// Notes the size that the values of a formula get, where the axis is the last one.
  void note_formula(ValueId id) {
    const Op& op = from_[id];
    if (lacks(op.type.dims, behind_) || !is_by_element(op)) return;
    sizes_.try_emplace(id, behind_ == 0 ? size_ : 0);
    for (ValueId operand : op.operands) note_formula(operand);
  }

  /// Whether the op reduces rows of a value that a formula has for more elements, and as many
  /// chunks.
  bool is_reduced_row(const Op& op) {
    if (op.kind != OpKind::reduce_sum && op.kind != OpKind::reduce_max) return false;
    const auto known = sizes_.find(op.operands[0]);
    if (known == sizes_.end() || known->second == 0) return false;
    const TensorType& row = from_[op.operands[0]].type;
    const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
    const auto last = static_cast<int64_t>(row.dims.size()) - 1;
    behind_ = 0;
    size_ = known->second;
    return axes == std::vector<int64_t>{last} && row.dtype == DType::f32 &&
           ceil_div(row.dims.back().constant(), kChunk) == ceil_div(size_, kChunk);
  }

  ValueId reduced(const Op& op) {
    const double identity =
        op.kind == OpKind::reduce_sum ? 0.0 : -std::numeric_limits<double>::infinity();
    const ValueId row = inside(op.operands[0], b_.constant(identity, DType::f32));
    return b_.op(op.kind, {row}, op.attrs, op.name);
  }

  ValueId chosen(const Op& op) {
    const Op& padding = from_[root_of(from_, op.operands[1])];
    // The choice comes before a last rounding, which leaves a number of that type as it is.
    const Op& value = from_[op.operands[0]];
    const bool is_rounded = value.kind == OpKind::cast &&
                            from_[value.operands[0]].type.dtype == DType::f32 &&
                            (op.type.dtype == DType::bf16 || op.type.dtype == DType::f16);
    const ValueId number =
        b_.op(OpKind::constant, {},
              Attributes()
                  .set(AttrName::dims, Dims())
                  .set(AttrName::dtype, is_rounded ? DType::f32 : padding.type.dtype)
                  .set(AttrName::value, padding.attrs.get<Number>(AttrName::value)));
    ValueId result = inside(is_rounded ? value.operands[0] : op.operands[0], number);
    if (is_rounded) result = b_.op(OpKind::cast, {result}, value.attrs);
    b_.graph()[result].name = op.name;
    return result;
  }

  /// The value at the greater size, with a number behind its own elements.
  ValueId inside(ValueId id, ValueId number) {
    const DimsRef dims = from_[id].type.dims;
    const double size = static_cast<double>(dims[*axis_of(dims, behind_)].constant());
    const ValueId value = wider(id);
    const ValueId is_inside = b_.less(positions(), b_.constant(size, DType::i32));
    return b_.op(OpKind::where, {is_inside, value, number});
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
    const auto known = wider_.find({id, behind_, size_});
    if (known != wider_.end()) return known->second;
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) operands.push_back(wider(operand));
    return wider_[{id, behind_, size_}] = b_.op(op.kind, operands, op.attrs, op.name);
  }

  const Graph& from_;
  Builder& b_;
  GraphRewriter& rewriter_;
  std::vector<llvm::SmallVector<ValueId, 2>> readers_;
  size_t behind_ = 0;                 // axes after the concatenation's axis
  int64_t size_ = 0;                  // its extent
  ValueId at_;                        // the concatenation
  std::map<ValueId, int64_t> sizes_;  // of formulas; 0: not of rows
  // By the value, and the axis and the extent that are wider.
  std::map<std::tuple<ValueId, size_t, int64_t>, ValueId> wider_;
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
