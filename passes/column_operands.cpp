#include "passes/column_operands.h"

#include <llvm/ADT/STLExtras.h>

#include <map>
#include <set>

#include "ir/cheap_ops.h"
#include "ir/column_space.h"
#include "ir/state_reads.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr size_t kMaxColumnOps = 12;  // of an operand that are computed anew

class ColumnOperands {
 public:
  ColumnOperands(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), builder_(builder), rewriter_(rewriter) {
    find_readers();
  }

  /// False: nothing changed.
  bool run() {
    rewriter_.rewrite([&](ValueId id, Op op) {
      if (is_column_sum(from_[id]) && is_shared(id)) {
        found_ = true;
        op.operands[0] = again(from_[id].operands[0], axes_of(from_[id]));
      }
      return rewriter_.add(std::move(op));
    });
    return found_;
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
    of_rows_.resize(from_.size());
    stored_.resize(from_.size());
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

  /// Computed for the columns again: a cheap value that needs no place in memory. A reader of a
  /// state stays where it is, before an op that writes the state.
  bool moves(ValueId id) const {
    const Op& op = from_[id];
    return is_cheap(op) && !stored_[id.index] && is_float(op.type.dtype) && !reads_state(from_, op);
  }

  /// Computing the value again for the columns reads no more bytes than the row kernel writes and
  /// the column kernel reads to hand it over.
  bool pays(ValueId id) const { return bytes_read(id) <= 2 * bytes(id); }

  /// The values on the way to the sum that are computed for its columns: all that no reduction of
  /// rows reads, those that it reads and that pay, and what these are computed from. False: none
  /// that a reduction of rows reads, or too many.
  bool is_shared(ValueId sum) {
    bool shared = false;
    std::set<ValueId> seen;
    const auto walk = [&](const auto& self, ValueId id, bool inside) -> void {
      if (!moves(id) || seen.size() > kMaxColumnOps) return;
      const bool begins = !inside && of_rows_[id.index];
      if ((begins && !pays(id)) || !seen.insert(id).second) return;
      shared |= begins;
      for (ValueId operand : from_[id].operands) self(self, operand, inside || begins);
    };
    walk(walk, from_[sum].operands[0], false);
    if (!shared || seen.size() > kMaxColumnOps) return false;
    own_ = std::move(seen);
    return true;
  }

  int64_t bytes(ValueId id) const {
    const TensorType& type = from_[id].type;
    return volume(type.dims).upper_bound(builder_.symbols()) * whole_bytes(type.dtype);
  }
  /// The bytes of all that the value is computed from.
  int64_t bytes_read(ValueId id) const {
    std::set<ValueId> leaves;
    const auto walk = [&](const auto& self, ValueId at) -> void {
      if (!moves(at)) {
        leaves.insert(at);
        return;
      }
      for (ValueId operand : from_[at].operands) self(self, operand);
    };
    walk(walk, id);
    int64_t sum = 0;
    for (ValueId leaf : leaves) sum += bytes(leaf);
    return sum;
  }

  ValueId again(ValueId id, const std::vector<int64_t>& columns) {
    if (!own_.contains(id)) return rewriter_[id];
    ValueId& made = again_[{columns, id}];
    if (made.valid()) return made;
    const Op& op = from_[id];
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) operands.push_back(again(operand, columns));
    const bool is_own = !of_rows_[id.index] &&
                        llvm::equal(operands, llvm::map_range(op.operands, [&](ValueId operand) {
                                      return rewriter_[operand];
                                    }));
    if (is_own) return again_[{columns, id}] = rewriter_[id];
    return again_[{columns, id}] = builder_.op(op.kind, operands, op.attrs, op.name + ".columns");
  }

  const Graph& from_;
  Builder& builder_;
  GraphRewriter& rewriter_;
  std::vector<bool> of_rows_;  // by value: a reduction of rows reads it
  std::vector<bool> stored_;   // by value: it has a place in memory whatever is fused
  std::set<ValueId> own_;      // of the sum at hand
  std::map<std::pair<std::vector<int64_t>, ValueId>, ValueId> again_;
  bool found_ = false;
};

}  // namespace

bool column_operands(Module& module) {
  return rewrite_graphs(
      module, [](const Op& op) { return op_class(op) == OpClass::reduce; },
      [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        return ColumnOperands(graph, builder, rewriter).run();
      });
}

}  // namespace sinter
