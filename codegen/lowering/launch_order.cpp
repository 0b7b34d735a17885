#include "codegen/lowering/launch_order.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <set>

#include "ir/contraction.h"
#include "ir/op_roles.h"
#include "kernels/registry.h"

namespace sinter {
namespace {

// The largest value, in elements, that is read in about one launch latency.
constexpr int64_t kMaxSmallElements = 1 << 21;

/// The dims that a step computes of a value: for a state, the dims of the appended rows.
const Dims& computed_dims(const Graph& group, ValueId id) {
  return written_type(group, group[id]).dims;
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
      if (is_never_empty(group, symbols_)) can_trigger_.push_back(static_cast<int64_t>(i));
      const Wish wish = wish_of(steps_[i]);
      if (wish.overlap.reads_early() &&
          trigger_between(wish.last_writer, static_cast<int64_t>(i))) {
        order_[i].early_inputs = wish.overlap.early_inputs;
        order_[i].early_caches = wish.overlap.early_caches;
      }
    }
    return std::move(order_);
  }

 private:
  /// A step's early reads, and the last step that writes any of them; -1: none of this call.
  struct Wish {
    Overlap overlap;
    int64_t last_writer = -1;
  };

  /// Makes sure that what step `writer` and earlier ones wrote is complete when step `reader`
  /// begins: a step between them triggers after its wait. It is the first that can and runs longer
  /// than the launch of the next one, which it delays; if none does, the first that can, so that
  /// the kernels directly before `reader` still trigger early.
  bool trigger_between(int64_t writer, int64_t reader) {
    const auto trigger = triggers_.upper_bound(writer);
    if (trigger != triggers_.end() && *trigger < reader) return true;
    const auto first = std::upper_bound(can_trigger_.begin(), can_trigger_.end(), writer);
    const auto end = std::lower_bound(first, can_trigger_.end(), reader);
    if (first == end) return false;
    const auto is_long = std::find_if(first, end, [&](int64_t i) { return reads_large_weight(i); });
    const int64_t chosen = is_long == end ? *first : *is_long;
    triggers_.insert(chosen);
    return order_[chosen].triggers_after_wait = true;
  }

  /// The step's kernel is built around an anchor and reads a large weight.
  bool reads_large_weight(int64_t i) const {
    return anchor_of(steps_[i].graph) && llvm::any_of(steps_[i].inputs, [&](ValueId id) {
             return graph_[id].kind == OpKind::weight &&
                    volume(graph_[id].type.dims).upper_bound(symbols_) > kMaxSmallElements;
           });
  }

  /// The early reads that the family of the step's kernel asks for.
  Wish wish_of(const ExtractedGroup& step) const {
    const std::optional<ValueId> anchor = anchor_of(step.graph);
    if (!anchor) return {};
    const KernelFamily& family = *anchored_by(step.graph[*anchor]);
    if (!family.early_reads) return {};
    return resolved(step, family.early_reads(step.graph, *anchor, symbols_));
  }

  Wish resolved(const ExtractedGroup& step, const EarlyWish& wanted) const {
    Wish wish;
    std::vector<uint32_t>& inputs = wish.overlap.early_inputs;
    for (uint32_t k : wanted.needed) {
      if (!llvm::is_contained(inputs, k)) inputs.push_back(k);
      wish.last_writer = std::max(wish.last_writer, writer_of(step, k));
    }
    for (uint32_t k : wanted.rows) {
      if (!llvm::is_contained(wish.overlap.early_caches, k)) wish.overlap.early_caches.push_back(k);
      wish.last_writer = std::max(wish.last_writer, writer_of_cache(step, k));
    }
    if (wanted.rest_if_all) add_rest(step, wish);
    return wish;
  }

  /// All inputs, if those not needed are complete by then as well.
  void add_rest(const ExtractedGroup& step, Wish& wish) const {
    std::vector<uint32_t>& inputs = wish.overlap.early_inputs;
    std::vector<uint32_t> all;
    for (uint32_t k = 0; k < step.graph.inputs.size(); ++k)
      if (llvm::is_contained(inputs, k) || writer_of(step, k) <= wish.last_writer) all.push_back(k);
    if (all.size() == step.graph.inputs.size()) inputs = std::move(all);
  }

  int64_t writer_of(const ExtractedGroup& step, uint32_t input) const {
    return made_by_[step.inputs[input].index];
  }

  /// The step after which the rows of a cache are complete that the kernel may read early.
  int64_t writer_of_cache(const ExtractedGroup& step, uint32_t input) const {
    const Graph& group = step.graph;
    for (const Op& op : group.ops()) {
      if (!reads_cache(op)) continue;
      const ValueId last = operand_with(op, OperandRole::last), all_last = root_of(group, last);
      const bool last_is_whole = volume(group[last].type.dims) == volume(group[all_last].type.dims);
      for (ValueId operand : operands_with(op, OperandRole::cache))
        if (const auto given = input_of(group, last);
            given && root_of(group, operand) == group.inputs[input] && last_is_whole &&
            has_rows_of_root(group, operand))
          return writer_of_rows(step.inputs[input], step.inputs[*given]);
    }
    return writer_of(step, input);
  }

  /// The step after which all of a cache is complete but the rows of the call's tokens, whose
  /// numbers are all that `last` holds.
  int64_t writer_of_rows(ValueId cache, ValueId last) const {
    const auto appends_these = [&](ValueId version) {
      return writes_rows(graph_[version]) &&
             root_of(graph_, operand_with(graph_[version], OperandRole::slot)) == last;
    };
    llvm::SmallVector<ValueId, 4> versions;
    for (; appends_these(cache) && !before_rows_.contains({cache.index, last.index});
         cache = operand_with(graph_[cache], OperandRole::state))
      versions.push_back(cache);
    const auto known = before_rows_.find({cache.index, last.index});
    const ValueId before = known == before_rows_.end() ? cache : known->second;
    for (ValueId version : versions) before_rows_[{version.index, last.index}] = before;
    return made_by_[before.index];
  }

  const Graph& graph_;
  llvm::ArrayRef<ExtractedGroup> steps_;
  llvm::ArrayRef<Symbol> symbols_;
  std::vector<int64_t> made_by_;  // by value: the step, -1: none
  std::vector<Overlap> order_;
  std::vector<int64_t> can_trigger_;  // steps that wait and are launched for all symbol values
  std::set<int64_t> triggers_;        // those that trigger after their wait
  /// By version of a state and `last`: the latest version without appends of those rows.
  mutable llvm::DenseMap<std::pair<uint32_t, uint32_t>, ValueId> before_rows_;
};

}  // namespace

bool overlaps_launches(const Graph& group, llvm::ArrayRef<Symbol> symbols) {
  const auto small = [&](const Dims& dims) {
    return volume(dims).upper_bound(symbols) <= kMaxSmallElements;
  };
  if (const std::optional<ValueId> anchor = anchor_of(group)) {
    const KernelFamily& family = *anchored_by(group[*anchor]);
    if (family.latency_bound) return true;
    if (family.early_reads && !family.early_reads(group, *anchor, symbols).needed.empty())
      return true;
  }
  for (uint32_t i = 0; i < group.size(); ++i) {
    const Op& op = group.ops()[i];
    if (op_class(op) == OpClass::leaf) continue;
    if (!small(computed_dims(group, {i}))) return false;
    const bool reduces = op_class(op) == OpClass::reduce || op_class(op) == OpClass::run_sums;
    if (reduces && !small(group[op.operands[0]].type.dims)) return false;
  }
  return true;
}

std::vector<Overlap> launch_order(const Graph& graph, llvm::ArrayRef<ExtractedGroup> steps,
                                  llvm::ArrayRef<Symbol> symbols) {
  return LaunchOrder(graph, steps, symbols).run();
}

}  // namespace sinter
