#include "passes/reductions/run_sums.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetOperations.h>

#include <map>
#include <set>

#include "ir/cheap_ops.h"
#include "ir/column_runs.h"
#include "ir/op_roles.h"
#include "ir/state_reads.h"
#include "ir/sym_expr.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

// A lane walks at least 8 rows one after the other, whatever the number of rows is.
constexpr int64_t kMinRows = 4096;
// A lane walks the same number of rows, whatever their width, and waits for each. (One H200, the
// gradient of a norm of heads: 16384 x 64 takes 40 us in one kernel. The limit between 64 and 512
// is the cost model's, not measured.)
constexpr int64_t kMinColumns = 512;
// Runs that occupy the multiprocessors of the reference machine.
constexpr int64_t kRunsThatFill = 128;
// Lanes of a run times columns: with more, a block of threads keeps them and its rows no longer in
// registers, and reads the rows twice (32768 x 2048, one H100: 579 us where the two kernels take
// 511).
constexpr int64_t kSumsInRegisters = 8192;
constexpr size_t kMaxSums = 8;      // of one run_sums
constexpr size_t kMaxWalked = 128;  // ops that an operand is followed through

/// The values of which the operand of a reduction is computed, element by element.
struct Reduced {
  std::set<ValueId> values;      // in memory, with as many elements
  std::set<ValueId> reductions;  // of rows, in rows of as many elements
};

class RunSums {
 public:
  RunSums(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), builder_(builder), rewriter_(rewriter) {}

  /// False: nothing changed.
  bool run() {
    find_reductions();
    for (uint32_t i = 0; i < from_.size(); ++i)
      if (is_column_sum(from_.ops()[i])) add_sum(ValueId{i});
    rewriter_.rewrite([&](ValueId id, const Op&) { return made(id); });
    return !beside_.empty();
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
    return !rows.overflowed() && rows.constant() >= kMinRows && width >= kMinColumns &&
           width % kChunk == 0 && width <= kMaxColumnsOfRuns;
  }

  /// Follows the operand of a reduction through ops element by element.
  Reduced follow(const Op& op) const {
    Reduced result;
    const Dims& dims = operand_dims(op);
    const SymExpr elements = volume(dims);
    std::set<ValueId> seen;
    llvm::SmallVector<ValueId, 16> next{op.operands[0]};
    while (!next.empty()) {
      const ValueId id = next.pop_back_val(), root = root_of(from_, id);
      const bool whole = volume(from_[root].type.dims) == elements;
      if (!seen.insert(root).second) continue;
      // A number of a row may be seen through a view: the row's own elements may not.
      if (is_by_element(from_[root]) && (root == id || !whole) && seen.size() < kMaxWalked)
        llvm::append_range(next, from_[root].operands);
      else if (is_reduction_of_rows(from_[root]) && operand_dims(from_[root]) == dims)
        result.reductions.insert(root);
      else if (whole && op_class(from_[root]) != OpClass::generator)
        result.values.insert(root);
    }
    return result;
  }

  /// The reductions of rows that have the dims of a sum down columns.
  void find_reductions() {
    std::set<Dims> dims;
    for (const Op& op : from_.ops())
      if (is_column_sum(op)) dims.insert(operand_dims(op));
    if (dims.empty()) return;
    for (uint32_t i = 0; i < from_.size(); ++i) {
      const Op& op = from_.ops()[i];
      if (!is_reduction_of_rows(op) || !dims.contains(operand_dims(op))) continue;
      const ValueId id{i};
      reductions_[id] = follow(op).values;
      for (ValueId value : reductions_[id]) readers_[value].push_back(id);
    }
  }

  /// The row reduction that reads all `values` and the most others (ties: the first): it belongs to
  /// the kernel that reads `values`.
  std::optional<ValueId> reader_of(const Dims& dims, const std::set<ValueId>& values) const {
    std::optional<ValueId> best;
    const auto readers = values.empty() ? readers_.end() : readers_.find(*values.rbegin());
    if (readers == readers_.end()) return best;
    for (ValueId id : readers->second) {
      const std::set<ValueId>& read = reductions_.at(id);
      if (operand_dims(from_[id]) == dims && llvm::set_is_subset(values, read) &&
          (!best || read.size() > reductions_.at(*best).size()))
        best = id;
    }
    return best;
  }

  /// The reduction of rows whose kernel has the elements of a sum's operand: it reads all that they
  /// are made of, or they are made of its result.
  std::optional<ValueId> reduction_beside(const Op& sum) const {
    const Reduced reduced = follow(sum);
    const Dims& dims = operand_dims(sum);
    if (const auto reader = reader_of(dims, reduced.values)) return reader;
    if (reduced.reductions.empty()) return std::nullopt;
    return reader_of(dims, reductions_.at(*reduced.reductions.rbegin()));
  }

  void add_sum(ValueId id) {
    const auto reduction = reduction_beside(from_[id]);
    if (!reduction) return;
    auto& sums = sums_[*reduction];
    if (sums.size() >= kMaxSums || (!sums.empty() && !can_stand_at(sums[0], id))) return;
    sums.push_back(id);
    beside_[id] = *reduction;
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
      if (id == first || seen.size() > kMaxWalked || writes_state(op) || reads_state(from_, op))
        return false;
      llvm::append_range(next, op.operands);
    }
    return true;
  }

  /// The value that stands for `id`, made with what it depends on where that is not there yet.
  ValueId made(ValueId id) {
    if (rewriter_[id].valid()) return rewriter_[id];
    if (const auto at = beside_.find(id); at != beside_.end()) {
      make_sums(sums_[at->second]);
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
    while (2 * of_run <= kMaxLanesOfRun && 2 * of_run * width <= kSumsInRegisters &&
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
  std::map<ValueId, std::set<ValueId>> reductions_;  // of rows, with the values that they read
  std::map<ValueId, std::vector<ValueId>> readers_;  // by value: those reductions
  std::map<ValueId, llvm::SmallVector<ValueId, 4>> sums_;  // that a reduction's kernel makes
  std::map<ValueId, ValueId> beside_;                      // by sum: the reduction
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
