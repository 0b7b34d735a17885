#include "codegen/launch_order.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/contraction.h"
#include "ir/op_roles.h"

namespace sinter {
namespace {

// Of a value: as many take about as long to read as a kernel to be launched.
constexpr int64_t kMostSmallElements = 1 << 21;

/// What a step computes of a value: of a state, the rows that it appends.
const Dims& computed_dims(const Graph& group, ValueId id) {
  return written_type(group, group[id]).dims;
}

/// Its kernel is launched whatever the symbols' values.
bool is_never_empty(const Graph& group, llvm::ArrayRef<Symbol> symbols) {
  return llvm::all_of(group.outputs, [&](ValueId output) {
    return llvm::all_of(computed_dims(group, output), [&](Dim dim) {
      return (dim.is_constant() ? dim.constant() : symbols[dim.symbol().index].low) > 0;
    });
  });
}

/// The operand again, in another element type.
bool is_conversion(const Graph& group, const Op& op) {
  return op.operands.size() == 1 && op.type.dtype != group[op.operands[0]].type.dtype;
}

/// Row i of the operand lies in row i of the value that it is a view of.
bool has_rows_of_root(const Graph& group, ValueId id) {
  const Dims& root = group[root_of(group, id)].type.dims;
  const auto rows = strided_rows(group, id);
  return rows && group[id].type.dims[0] == root[0] &&
         rows->row_stride * SymExpr(root[0]) == volume(root);
}

/// Finds what the steps of an entry may read early.
class LaunchOrder {
 public:
  LaunchOrder(const Graph& graph, llvm::ArrayRef<ExtractedGroup> steps,
              llvm::ArrayRef<Symbol> symbols)
      : graph_(graph), steps_(steps), symbols_(symbols), made_by_(graph.size(), -1) {
    for (size_t i = 0; i < steps.size(); ++i)
      for (ValueId output : steps[i].outputs) made_by_[output.index] = static_cast<int64_t>(i);
  }

  std::vector<Overlap> run() {
    order_.resize(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Graph& group = steps_[i].graph;
      if (group.size() == 0 || !overlaps_launches(group, symbols_)) continue;
      order_[i].waits = true;
      const Wish wish = wish_of(steps_[i]);
      if (wish.overlap.reads_early() && hold_between(wish.last_writer, static_cast<int64_t>(i))) {
        order_[i].early_inputs = wish.overlap.early_inputs;
        order_[i].early_caches = wish.overlap.early_caches;
      }
    }
    return std::move(order_);
  }

 private:
  /// What a step would read early, and the last step that writes any of it; -1: none of this call.
  struct Wish {
    Overlap overlap;
    int64_t last_writer = -1;
  };

  /// Makes sure that what step `writer` and those before it wrote is complete when step `reader`
  /// begins: a step between them holds the next one. The first that can: the next kernels should be
  /// held as little as may be.
  bool hold_between(int64_t writer, int64_t reader) {
    for (int64_t i = writer + 1; i < reader; ++i)
      if (order_[i].holds_next) return true;
    for (int64_t i = writer + 1; i < reader; ++i)
      if (order_[i].waits && is_never_empty(steps_[i].graph, symbols_))
        return order_[i].holds_next = true;
    return false;
  }

  Wish wish_of(const ExtractedGroup& step) const {
    for (uint32_t i = 0; i < step.graph.size(); ++i) {
      const Op& op = step.graph.ops()[i];
      if (reads_cache(op)) return of_cache_reader(step, op);
      if (op_class(op) == OpClass::anchor) return of_matvec(step, {i});
    }
    return {};
  }

  /// The step after which all of a cache is complete but the rows of the call's tokens, whose
  /// numbers are all that `last` holds.
  int64_t writer_of_rows(ValueId cache, ValueId last) const {
    while (writes_state(graph_[cache]) &&
           root_of(graph_, operand_with(graph_[cache], OperandRole::slot)) == last)
      cache = operand_with(graph_[cache], OperandRole::state);
    return made_by_[cache.index];
  }

  Wish of_cache_reader(const ExtractedGroup& step, const Op& op) const {
    const Graph& group = step.graph;
    Wish wish;
    const auto add = [&](std::vector<uint32_t>& list, uint32_t input, int64_t writer) {
      if (!llvm::is_contained(list, input)) list.push_back(input);
      wish.last_writer = std::max(wish.last_writer, writer);
    };
    const ValueId last = operand_with(op, OperandRole::last), all_last = root_of(group, last);
    const bool last_is_whole = volume(group[last].type.dims) == volume(group[all_last].type.dims);
    const auto input_of = [&](ValueId id) {
      return static_cast<uint32_t>(llvm::find(group.inputs, root_of(group, id)) -
                                   group.inputs.begin());
    };
    for (ValueId operand : {operand_with(op, OperandRole::first), last}) {
      const uint32_t k = input_of(operand);
      add(wish.overlap.early_inputs, k, made_by_[step.inputs[k].index]);
    }
    for (ValueId operand : operands_with(op, OperandRole::cache)) {
      const uint32_t k = input_of(operand);
      const ValueId cache = step.inputs[k];
      add(wish.overlap.early_caches, k,
          last_is_whole && has_rows_of_root(group, operand)
              ? writer_of_rows(cache, step.inputs[input_of(all_last)])
              : made_by_[cache.index]);
    }
    return wish;
  }

  /// The operand; what else is complete by then as well, if that is everything.
  Wish of_matvec(const ExtractedGroup& step, ValueId anchor) const {
    const Graph& group = step.graph;
    const std::vector<bool> front = matvec_front(group, anchor);
    Wish wish;
    if (llvm::any_of(group.outputs, [&](ValueId id) { return front[id.index]; }) ||
        !is_never_empty(group, symbols_))
      return wish;
    const auto add = [&](bool is_front) {
      for (uint32_t k = 0; k < group.inputs.size(); ++k)
        if (front[group.inputs[k].index] == is_front &&
            (is_front || made_by_[step.inputs[k].index] <= wish.last_writer)) {
          wish.overlap.early_inputs.push_back(k);
          wish.last_writer = std::max(wish.last_writer, made_by_[step.inputs[k].index]);
        }
    };
    add(true);
    const size_t needed = wish.overlap.early_inputs.size();
    add(false);
    if (wish.overlap.early_inputs.size() < group.inputs.size())
      wish.overlap.early_inputs.resize(needed);
    llvm::sort(wish.overlap.early_inputs);
    return wish;
  }

  const Graph& graph_;
  llvm::ArrayRef<ExtractedGroup> steps_;
  llvm::ArrayRef<Symbol> symbols_;
  std::vector<int64_t> made_by_;  // by value: the step, -1: none
  std::vector<Overlap> order_;
};

}  // namespace

bool overlaps_launches(const Graph& group, llvm::ArrayRef<Symbol> symbols) {
  const auto small = [&](const Dims& dims) {
    return volume(dims).upper_bound(symbols) <= kMostSmallElements;
  };
  for (const Op& op : group.ops())
    if (op_class(op) == OpClass::anchor || op_class(op) == OpClass::opaque) return true;
  for (uint32_t i = 0; i < group.size(); ++i) {
    const Op& op = group.ops()[i];
    if (op_class(op) == OpClass::leaf) continue;
    if (!small(computed_dims(group, {i}))) return false;
    if (op_class(op) == OpClass::reduce && !small(group[op.operands[0]].type.dims)) return false;
  }
  return true;
}

bool has_direct_operand(const Graph& group, ValueId anchor) {
  const ValueId operand = group[anchor].operands[0];
  return group[root_of(group, operand)].kind == OpKind::input && is_dense(group, operand);
}

std::vector<bool> matvec_front(const Graph& group, ValueId anchor) {
  std::vector<bool> front(group.size(), false);
  front[group[anchor].operands[0].index] = true;
  for (uint32_t i = anchor.index; i-- > 0;)
    if (front[i])
      for (ValueId id : group.ops()[i].operands) front[id.index] = true;
  // An operand that stands in memory has no front: what reads it as well stands behind.
  if (has_direct_operand(group, anchor)) return front;
  // A value of the front that leaves may be rounded for its store alone.
  for (uint32_t i = 0; i < group.size(); ++i)
    if (const Op& op = group.ops()[i]; is_conversion(group, op) && front[op.operands[0].index])
      front[i] = true;
  return front;
}

std::vector<Overlap> launch_order(const Graph& graph, llvm::ArrayRef<ExtractedGroup> steps,
                                  llvm::ArrayRef<Symbol> symbols) {
  return LaunchOrder(graph, steps, symbols).run();
}

std::string wait_text(const Overlap& overlap) {
  return overlap.holds_next ? "wait_for_inputs();\nlet_next_launch();\n" : "wait_for_inputs();\n";
}

}  // namespace sinter
