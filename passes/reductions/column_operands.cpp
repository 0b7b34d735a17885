// A value that a sum down columns adds and a reduction of rows reads is computed for each of them:
// no kernel makes both, so that the value would be written by one and read by the other. A norm's
// gradients of its weight and of its input are such a pair:
//
//   %y = (x - mean) * rstd                            %y = ...   %y' = ...
//   %weight = reduce_sum (dy * y) {axes = [0]}   =>   %weight = reduce_sum (dy * y') {axes = [0]}
//   %c = reduce_sum (dy * y) {axes = [1]}             %c = reduce_sum (dy * y) {axes = [1]}
//
// So is each cheap value that no other op needs in memory, where what it is computed from is no
// more than to write and to read it; the sum of many gradients is more, and is written. No bit
// changes: the ops are element by element, and each sum adds the same numbers in its order.
#include "ir/column_space.h"
#include "ir/reread.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// A place is the axes that a sum adds.
class ColumnOperands : Reread<std::vector<int64_t>> {
 public:
  ColumnOperands(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : Reread(from, builder, rewriter, ".columns"), of_rows_(from.size()), stored_(from.size()) {
    find_readers();
  }

  std::optional<ValueId> replaced(ValueId id, Op& op) {
    if (!is_column_sum(from_[id]) || !is_shared(id)) return std::nullopt;
    op.operands[0] = at(from_[id].operands[0], axes_of(op), id);
    return rewriter_.add(std::move(op));
  }

 private:
  static std::vector<int64_t> axes_of(const Op& op) {
    return op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  }
  bool is_column_sum(const Op& op) const {
    return op_class(op) == OpClass::reduce &&
           column_space(from_[op.operands[0]].type.dims, axes_of(op)).has_value();
  }

  /// Who reads each value, through ops element by element and views.
  void find_readers() {
    for (ValueId id : from_.outputs) stored_[id.index] = true;
    for (uint32_t i = static_cast<uint32_t>(from_.size()); i-- > 0;) {
      const Op& op = from_.ops()[i];
      const OpClass c = op_class(op);
      const bool passes = is_by_element(op) || c == OpClass::view;
      const bool reduces_rows =
          (c == OpClass::reduce && !is_column_sum(op)) || c == OpClass::composite;
      for (ValueId operand : op.operands) {
        if (reduces_rows || (passes && of_rows_[i])) of_rows_[operand.index] = true;
        // All but these read memory.
        if (!is_by_element(op) && c != OpClass::reduce && c != OpClass::composite &&
            (c != OpClass::view || stored_[i]))
          stored_[operand.index] = true;
      }
    }
  }

  /// Finds what is computed for the columns of a sum: cheap values that need no place in memory, on
  /// the way to the sum. Those are all that no reduction of rows reads, those that one reads and
  /// that pay, and what these are computed from. A value pays if to read all that it is computed
  /// from takes no more bytes than to write it in the row kernel and to read it in the column
  /// kernel. False: none pays, or they exceed the budget.
  bool is_shared(ValueId sum) {
    const auto formula = [&](ValueId value, bool of_rows) {
      return formula_of(from_, value, [&, of_rows](ValueId id) {
        const Op& op = from_[id];
        return is_cheap(op) && is_float(op.type.dtype) && !stored_[id.index] &&
               (of_rows || !of_rows_[id.index]) && rewriter_.may_compute(id, sum);
      });
    };
    Formula again = formula(from_[sum].operands[0], false);
    bool shared = false;
    for (ValueId value : again.read) {
      const Formula inner = formula(value, true);
      if (inner.computed.empty() || bytes(inner.read) > 2 * bytes({value})) continue;
      for (ValueId id : inner.computed) again.compute(from_, id);
      shared = true;
    }
    again_ = std::move(again.computed);
    return shared && again.fits();
  }

  int64_t bytes(const std::set<ValueId>& values) const {
    int64_t sum = 0;
    for (ValueId value : values) {
      const TensorType& type = from_[value].type;
      sum += volume(type.dims).upper_bound(builder_.symbols()) * whole_bytes(type.dtype);
    }
    return sum;
  }

  /// A value that no reduction of rows reads is computed once, unless an operand is computed again.
  bool is_whole(ValueId id, const std::vector<int64_t>& columns) const override {
    return !again_.contains(id) ||
           (!of_rows_[id.index] && llvm::all_of(from_[id].operands, [&](ValueId operand) {
             return is_whole(operand, columns);
           }));
  }

  std::vector<bool> of_rows_;  // by value: a reduction of rows reads it
  std::vector<bool> stored_;   // by value: it has a place in memory whatever is fused
  std::set<ValueId> again_;    // computed for the sum at hand
};

}  // namespace

bool column_operands(Module& module) {
  return replace_ops<ColumnOperands>(module,
                                     [](const Op& op) { return op_class(op) == OpClass::reduce; });
}

}  // namespace sinter
