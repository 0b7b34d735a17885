#include "passes/label_sums.h"

#include <llvm/ADT/STLExtras.h>

#include <map>

#include "ir/cheap_ops.h"
#include "ir/float_constant.h"
#include "ir/state_reads.h"
#include "ir/sym_expr.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr int kMaxLabelOps = 16;  // that are computed at the label

/// A row whose elements are zeros but for the one that a label names.
struct LabelSum {
  ValueId at;          // the sum
  Dims dims;           // of the summed value
  int64_t axis = 0;    // the summed one
  ValueId label = {};  // an integer for each row
  ValueId also = {};   // i1 for each row: whether the row has a label; invalid: all have
  ValueId value = {}, other = {};       // the element at the label, the zeros
  llvm::SmallVector<ValueId, 2> casts;  // of the row before it is summed, the last one first

  /// The axis counted in a value that broadcasts to the summed one; negative: it lacks the axis.
  int64_t axis_of(DimsRef of) const {
    return axis - static_cast<int64_t>(dims.size()) + static_cast<int64_t>(of.size());
  }
  /// One element for each row.
  bool is_of_rows(DimsRef of) const {
    const int64_t at = axis_of(of);
    return at < 0 || of[static_cast<size_t>(at)].is(1);
  }
};

class LabelSums {
 public:
  LabelSums(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), b_(builder), rewriter_(rewriter) {}

  /// False: nothing changed.
  bool run() {
    rewriter_.rewrite([&](ValueId id, Op op) {
      const std::optional<LabelSum> sum = label_sum(id);
      if (!sum) return rewriter_.add(std::move(op));
      found_ = true;
      return chosen(*sum, op);
    });
    return found_;
  }

 private:
  std::optional<LabelSum> label_sum(ValueId id) const {
    const Op& op = from_[id];
    if (op.kind != OpKind::reduce_sum || !is_float(op.type.dtype)) return std::nullopt;
    const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
    LabelSum sum;
    sum.at = id;
    ValueId summed = op.operands[0];
    for (; from_[summed].kind == OpKind::cast; summed = from_[summed].operands[0])
      sum.casts.push_back(summed);  // zeros of every type are zeros of another
    const Op& chosen = from_[summed];
    if (axes.size() != 1 || chosen.kind != OpKind::where) return std::nullopt;
    sum.dims = chosen.type.dims;
    sum.axis = axes[0];
    sum.value = chosen.operands[1];
    sum.other = chosen.operands[2];
    const Dim length = sum.dims[static_cast<size_t>(sum.axis)];
    if (!length.is_constant() || length.is(0)) return std::nullopt;
    const std::optional<float> other = float_constant(from_[sum.other]);
    if (!other || *other != 0.0f) return std::nullopt;
    const Op& condition = from_[chosen.operands[0]];
    if (condition.kind == OpKind::logical_and) {
      for (const auto& [equal, also] : {std::pair(0, 1), std::pair(1, 0)})
        if (find_label(from_[condition.operands[static_cast<size_t>(equal)]], sum)) {
          sum.also = condition.operands[static_cast<size_t>(also)];
          break;
        }
      if (!sum.also.valid() || !sum.is_of_rows(from_[sum.also].type.dims) ||
          is_overwritten(from_, sum.also, sum.at))
        return std::nullopt;
    } else if (!find_label(condition, sum)) {
      return std::nullopt;
    }
    int ops = 0;
    return is_at_label(sum, sum.value, ops) ? std::optional(sum) : std::nullopt;
  }

  /// Whether `op` compares the positions along the axis with a number for each row.
  bool find_label(const Op& op, LabelSum& sum) const {
    if (op.kind != OpKind::equal) return false;
    for (const auto& [positions, label] : {std::pair(0, 1), std::pair(1, 0)}) {
      const Op& iota = from_[op.operands[static_cast<size_t>(positions)]];
      const ValueId other = op.operands[static_cast<size_t>(label)];
      const DimsRef dims = iota.type.dims;
      const int64_t at = sum.axis_of(dims);
      if (iota.kind != OpKind::iota || iota.attrs.get<int64_t>(AttrName::axis) != at || at < 0 ||
          dims[static_cast<size_t>(at)] != sum.dims[static_cast<size_t>(sum.axis)] ||
          !sum.is_of_rows(from_[other].type.dims) || is_overwritten(from_, other, sum.at))
        continue;
      sum.label = other;
      return true;
    }
    return false;
  }

  /// Whether the value can be had at the label alone; counts the ops that compute it there.
  bool is_at_label(const LabelSum& sum, ValueId id, int& ops) const {
    const Op& op = from_[id];
    if (is_overwritten(from_, id, sum.at)) return false;
    if (sum.is_of_rows(op.type.dims)) return true;
    if (is_by_element(op))
      return ++ops <= kMaxLabelOps && llvm::all_of(op.operands, [&](ValueId operand) {
        return is_at_label(sum, operand, ops);
      });
    // Other values are read where they stand in memory.
    const OpClass root = op_class(from_[root_of(from_, id)]);
    return DimsRef(op.type.dims) == DimsRef(sum.dims) &&
           (root == OpClass::leaf || root == OpClass::contraction);
  }

  ValueId chosen(const LabelSum& sum, const Op& op) {
    const ValueId label = rewriter_[sum.label];
    const DType integer = b_.type(label).dtype;
    const double last = static_cast<double>(sum.dims[static_cast<size_t>(sum.axis)].constant()) - 1;
    const ValueId zero = b_.constant(0, integer), end = b_.constant(last, integer);
    index_ = b_.cast(b_.minimum(b_.maximum(label, zero), end), DType::i32);
    at_label_.clear();
    const ValueId value = at_label(sum, sum.value);
    ValueId named = b_.logical_and(b_.less_equal(zero, label), b_.less_equal(label, end));
    if (sum.also.valid()) named = b_.logical_and(named, rewriter_[sum.also]);
    ValueId one = b_.op(OpKind::where, {named, value, rewriter_[sum.other]});
    for (ValueId id : llvm::reverse(sum.casts)) one = b_.cast(one, from_[id].type.dtype);
    const ValueId result = b_.add(one, b_.constant(0, op.type.dtype));
    if (DimsRef(b_.type(result).dims) != DimsRef(op.type.dims))
      return b_.op(OpKind::broadcast, {result}, Attributes().set(AttrName::dims, op.type.dims),
                   op.name);
    b_.graph()[result].name = op.name;
    return result;
  }

  ValueId at_label(const LabelSum& sum, ValueId id) {
    const Op& op = from_[id];
    if (sum.is_of_rows(op.type.dims)) return rewriter_[id];
    const auto known = at_label_.find(id);
    if (known != at_label_.end()) return known->second;
    if (!is_by_element(op)) return at_label_[id] = gathered(sum, id);
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) operands.push_back(at_label(sum, operand));
    return at_label_[id] = b_.op(op.kind, operands, op.attrs, op.name + ".label");
  }

  ValueId gathered(const LabelSum& sum, ValueId id) {
    Dims dims = sum.dims;
    dims[static_cast<size_t>(sum.axis)] = Dim(1);
    ValueId index = index_;
    if (DimsRef(b_.type(index).dims) != DimsRef(dims))
      index = b_.op(OpKind::broadcast, {index}, Attributes().set(AttrName::dims, dims));
    return b_.op(OpKind::gather, {rewriter_[id], index}, Attributes().set(AttrName::axis, sum.axis),
                 from_[id].name + ".label");
  }

  const Graph& from_;
  Builder& b_;
  GraphRewriter& rewriter_;
  ValueId index_;                        // of the label's element
  std::map<ValueId, ValueId> at_label_;  // of the sum that is rewritten
  bool found_ = false;
};

}  // namespace

bool label_sums(Module& module) {
  return rewrite_graphs(
      module, [](const Op& op) { return op.kind == OpKind::reduce_sum; },
      [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        return LabelSums(graph, builder, rewriter).run();
      });
}

}  // namespace sinter
