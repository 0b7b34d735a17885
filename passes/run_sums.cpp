#include "passes/run_sums.h"

#include <llvm/ADT/STLExtras.h>

#include <map>
#include <set>

#include "ir/column_runs.h"
#include "ir/op_roles.h"
#include "ir/sym_expr.h"
#include "passes/cheap_ops.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

// A lane walks at least 8 rows one after the other, whatever the number of rows is.
constexpr int64_t kLeastRows = 4096;
// Runs that occupy the multiprocessors of the reference machine.
constexpr int64_t kRunsThatFill = 128;
constexpr size_t kMostSums = 8;      // of one run_sums
constexpr size_t kMostWalked = 128;  // ops that an operand is followed through

/// The operand of a reduction by rows or of one down all columns.
struct Reduced {
  ValueId operand;
  llvm::SmallVector<ValueId, 4> values;      // that it is made of and that have its elements
  llvm::SmallVector<ValueId, 4> reductions;  // of rows, the results of which it is made of
};

/// Reductions of rows that share a value in memory, and the sums that their kernel makes.
struct RowGroup {
  uint32_t joined_to;  // another group, or itself
  llvm::SmallVector<ValueId, 4> sums;
};

class RunSums {
 public:
  RunSums(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), builder_(builder), rewriter_(rewriter) {}

  /// False: nothing changed.
  bool run() {
    find_groups();
    for (uint32_t i = 0; i < from_.size(); ++i)
      if (is_column_sum(from_.ops()[i])) add_sum(ValueId{i});
    for (uint32_t g = 0; g < groups_.size(); ++g)
      for (ValueId sum : groups_[g].sums) group_of_sum_[sum.index] = g;
    rewriter_.rewrite([&](ValueId id, const Op&) { return made(id); });
    return !group_of_sum_.empty();
  }

 private:
  const Dims& operand_dims(const Op& op) const { return from_[op.operands[0]].type.dims; }
  static std::vector<int64_t> axes_of(const Op& op) {
    return op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  }

  bool is_reduction_of_rows(const Op& op) const {
    return op_class(op) == OpClass::reduce &&
           axes_of(op) == std::vector<int64_t>{static_cast<int64_t>(operand_dims(op).size()) - 1};
  }

  bool is_column_sum(const Op& op) const {
    if (op.kind != OpKind::reduce_sum || !is_float(op.type.dtype)) return false;
    const Dims& dims = operand_dims(op);
    if (!llvm::all_of(dims, [](Dim dim) { return dim.is_constant(); }) || dims.size() < 2)
      return false;
    const std::vector<int64_t> axes = axes_of(op);
    const auto last = static_cast<int64_t>(dims.size()) - 1;
    for (int64_t axis = 0; axis <= last; ++axis)
      if (!(axis < last && dims[axis].is(1)) && llvm::is_contained(axes, axis) != (axis < last))
        return false;
    const SymExpr rows = volume(DimsRef(dims).drop_back());
    const int64_t width = dims.back().constant();
    return !rows.overflowed() && rows.constant() >= kLeastRows && width > 0 &&
           width % kChunk == 0 && width <= kMostColumnsOfRuns;
  }

  /// Follows the operand of a reduction through ops element by element.
  Reduced follow(const Op& op) const {
    Reduced result{op.operands[0], {}, {}};
    const Dims& dims = operand_dims(op);
    std::set<ValueId> seen;
    llvm::SmallVector<ValueId, 16> next{op.operands[0]};
    while (!next.empty()) {
      const ValueId id = next.pop_back_val();
      if (!seen.insert(id).second) continue;
      if (is_by_element(from_[id]) && seen.size() < kMostWalked) {
        llvm::append_range(next, from_[id].operands);
        continue;
      }
      const ValueId root = root_of(from_, id);
      if (is_reduction_of_rows(from_[root]) && operand_dims(from_[root]) == dims)
        result.reductions.push_back(root);
      else if (volume(from_[root].type.dims) == volume(dims) &&
               op_class(from_[root]) != OpClass::generator)
        result.values.push_back(root);
    }
    return result;
  }

  uint32_t find(uint32_t group) const {
    while (groups_[group].joined_to != group) group = groups_[group].joined_to;
    return group;
  }

  /// Groups of the reductions of rows that have the dims of a sum down columns.
  void find_groups() {
    std::set<Dims> dims;
    for (const Op& op : from_.ops())
      if (is_column_sum(op)) dims.insert(operand_dims(op));
    if (dims.empty()) return;
    for (uint32_t i = 0; i < from_.size(); ++i) {
      const Op& op = from_.ops()[i];
      if (!is_reduction_of_rows(op) || !dims.contains(operand_dims(op))) continue;
      const auto own = static_cast<uint32_t>(groups_.size());
      groups_.push_back({own, {}});
      const auto join = [&](uint32_t group) { groups_[find(group)].joined_to = find(own); };
      const Reduced reduced = follow(op);
      for (ValueId value : reduced.values) {
        const auto [at, is_new] = group_of_value_.try_emplace({operand_dims(op), value}, own);
        if (!is_new) join(at->second);
      }
      group_of_reduction_[i] = own;
    }
  }

  /// The group whose kernel has the elements of a sum's operand: it reads all that they are made
  /// of, or they are made of what the last of its reductions gives.
  std::optional<uint32_t> group_for(const Op& sum) const {
    const Reduced reduced = follow(sum);
    std::optional<uint32_t> group;
    bool all = !reduced.values.empty();
    for (ValueId value : reduced.values) {
      const auto at = group_of_value_.find({operand_dims(sum), value});
      const bool same = at != group_of_value_.end() && (!group || *group == find(at->second));
      all &= same;
      if (same) group = find(at->second);
    }
    if (all) return group;
    if (reduced.reductions.empty()) return std::nullopt;
    return find(group_of_reduction_.at(llvm::max_element(reduced.reductions)->index));
  }

  void add_sum(ValueId id) {
    const auto group = group_for(from_[id]);
    if (!group) return;
    auto& sums = groups_[*group].sums;
    if (sums.size() < kMostSums && (sums.empty() || can_stand_at(sums[0], id))) sums.push_back(id);
  }

  /// Whether the operand of `sum` may be computed where `first` is: it does not depend on `first`,
  /// and little of it comes later. No state is read or written on the way.
  bool can_stand_at(ValueId first, ValueId sum) const {
    std::set<ValueId> seen;
    llvm::SmallVector<ValueId, 16> next{from_[sum].operands[0]};
    while (!next.empty()) {
      const ValueId id = next.pop_back_val();
      if (id.index < first.index || !seen.insert(id).second) continue;
      const Op& op = from_[id];
      if (id == first || seen.size() > kMostWalked || writes_state(op) ||
          llvm::any_of(op.operands, [&](ValueId operand) {
            return is_state_version(from_[root_of(from_, operand)]);
          }))
        return false;
      llvm::append_range(next, op.operands);
    }
    return true;
  }

  /// The value that stands for `id`, made with what it depends on where that is not there yet.
  ValueId made(ValueId id) {
    if (rewriter_[id].valid()) return rewriter_[id];
    if (const auto at = group_of_sum_.find(id.index); at != group_of_sum_.end()) {
      make_sums(groups_[at->second].sums);
      return rewriter_[id];
    }
    Op op = from_[id];
    for (ValueId& operand : op.operands) operand = made(operand);
    return rewriter_[id] = rewriter_.add(std::move(op));
  }

  void make_sums(llvm::ArrayRef<ValueId> sums) {
    llvm::SmallVector<ValueId, 4> operands;
    for (ValueId sum : sums) operands.push_back(made(from_[sum].operands[0]));
    const Dims& dims = operand_dims(from_[sums[0]]);
    const int64_t lanes = column_lanes(dims), width = dims.back().constant();
    int64_t of_run = 1;
    while (2 * of_run <= kMostLanesOfRun && 2 * of_run * width <= kMostSumsOfRun &&
           lanes / (2 * of_run) >= kRunsThatFill)
      of_run *= 2;
    Attributes attrs;
    attrs.set(AttrName::runs, lanes / of_run);
    const ValueId runs =
        builder_.op(OpKind::run_sums, operands, std::move(attrs), from_[sums[0]].name + ".runs");
    for (size_t k = 0; k < sums.size(); ++k)
      rewriter_[sums[k]] = joined(runs, static_cast<int64_t>(k), from_[sums[k]]);
  }

  /// The sum from the runs, each padded to a chunk of 8.
  ValueId joined(ValueId runs, int64_t number, const Op& sum) {
    const Dims dims = builder_.type(runs).dims;
    const ValueId part = dims[1].is(1) ? runs : builder_.slice(runs, 1, number, Dim(1));
    const ValueId zeros = builder_.constant(0, DType::f32, {dims[0], Dim(kChunk - 1), dims[2]});
    Attributes axis;
    axis.set(AttrName::axis, int64_t{1});
    const ValueId padded = builder_.op(OpKind::concat, {part, zeros}, std::move(axis));
    const bool same = sum.type == TensorType{DType::f32, {Dim(1), Dim(1), dims[2]}};
    const ValueId total =
        builder_.reduce(OpKind::reduce_sum, padded, {0, 1}, same ? sum.name : sum.name + ".joined");
    if (same) return total;
    const ValueId shaped =
        sum.type.dims == builder_.type(total).dims ? total : builder_.reshape(total, sum.type.dims);
    // No view: an output has a place in memory of its own.
    return sum.type.dtype == DType::f32 ? builder_.op(OpKind::copy, {shaped}, {}, sum.name)
                                        : builder_.cast(shaped, sum.type.dtype, sum.name);
  }

  const Graph& from_;
  Builder& builder_;
  GraphRewriter& rewriter_;
  std::vector<RowGroup> groups_;
  std::map<std::pair<Dims, ValueId>, uint32_t> group_of_value_;
  std::map<uint32_t, uint32_t> group_of_reduction_, group_of_sum_;
};

}  // namespace

bool run_sums(Module& module) {
  return rewrite_graphs(
      module, [](const Op& op) { return op.kind == OpKind::reduce_sum; },
      [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
        return RunSums(graph, builder, rewriter).run();
      });
}

}  // namespace sinter
