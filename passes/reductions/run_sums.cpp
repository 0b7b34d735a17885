// Sums down columns that read what reductions of rows read are made by the kernel of the rows: it
// has every element in a register, and the sums down columns would read all of it again. A norm's
// gradients are such sums, and so is the gradient of a bias that was added before the norm:
//
//   %weight = reduce_sum %gy {axes = [0]} : f32[1, 768]
//   %bias = reduce_sum %g {axes = [0]} : f32[1, 768]
// =>
//   %runs = run_sums %gy, %g {runs = 128} : f32[128, 2, 768]
//   %part = slice %runs {axis = 1, begin = 0, size = 1} : f32[128, 1, 768]
//   %padded = concat %part, %zeros {axis = 1} : f32[128, 8, 768]
//   %joined = reduce_sum %padded {axes = [0, 1]} : f32[1, 1, 768]
//   %weight = copy(reshape %joined) : f32[1, 768]                       and %bias alike
//
// No bit changes (ir/column_runs.h). The rows have a constant number. With few rows, or few
// columns, two kernels take less time than one whose lanes walk rows in turn.
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetOperations.h>

#include "ir/op_roles.h"
#include "ir/reduction_order.h"
#include "ir/reread.h"
#include "ir/sym_expr.h"
#include "kernels/registry.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr size_t kMaxSums = 8;      // of one run_sums
constexpr size_t kMaxWalked = 128;  // ops that an operand is followed through
bool is_short(const Formula& formula) { return formula.computed.size() <= kMaxWalked; }

/// The values of which the operand of a reduction is computed, element by element.
struct Reduced {
  std::set<ValueId> values;      // in memory, with as many elements
  std::set<ValueId> reductions;  // of rows, in rows of as many elements
};

class RunSums : RewriteRule {
 public:
  RunSums(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : RewriteRule(from, builder, rewriter) {
    for (uint32_t i = 0; i < from_.size(); ++i) note_reduction({i});
    for (uint32_t i = 0; i < from_.size(); ++i)
      if (runs_of(from_.ops()[i])) add_sum({i});
  }

  /// All sums of a kernel are made at the first one.
  std::optional<ValueId> replaced(ValueId id, const Op&) {
    if (const auto at = beside_.find(id); at != beside_.end() && !rewriter_[id].valid())
      make_sums(sums_[at->second]);
    return rewriter_[id].valid() ? std::optional(rewriter_[id]) : std::nullopt;
  }

 private:
  const Dims& operand_dims(const Op& op) const { return from_[op.operands[0]].type.dims; }

  /// nullopt: the op is no sum down columns, or no kernel of rows makes it.
  std::optional<SideResult> runs_of(const Op& op) const {
    return side_result(from_, op, SideKind::column_runs);
  }

  bool is_reduction_of_rows(const Op& op) const {
    return op_class(op) == OpClass::reduce &&
           op.attrs.get<std::vector<int64_t>>(AttrName::axes) ==
               std::vector<int64_t>{static_cast<int64_t>(operand_dims(op).size()) - 1};
  }

  /// Follows the operand of a reduction through ops element by element.
  Reduced follow(const Op& op) const {
    const Dims& dims = operand_dims(op);
    const auto is_whole = [&, elements = volume(dims)](ValueId id) {
      return volume(from_[id].type.dims) == elements;
    };
    // A number of a row may be seen through a view: the row's own elements may not.
    const auto follows = [&](ValueId id) {
      const ValueId root = root_of(from_, id);
      return is_by_element(from_[root]) && (root == id || !is_whole(root));
    };
    const Formula formula = walk_formula(from_, op.operands[0], follows, is_short);
    Reduced result;
    if (!is_short(formula)) return result;
    for (ValueId read : formula.read) {
      const ValueId root = root_of(from_, read);
      if (is_reduction_of_rows(from_[root]) && operand_dims(from_[root]) == dims)
        result.reductions.insert(root);
      else if (is_whole(root) && op_class(from_[root]) != OpClass::generator)
        result.values.insert(root);
    }
    return result;
  }

  void note_reduction(ValueId id) {
    if (!is_reduction_of_rows(from_[id])) return;
    reductions_[id] = follow(from_[id]).values;
    for (ValueId value : reductions_[id]) readers_[value].push_back(id);
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

  /// Whether the operand of `sum` may be computed where `first` is: it depends on no such sum from
  /// there on, and little of it comes later. No state is written on the way.
  bool can_stand_at(ValueId first, ValueId sum) const {
    const auto is_later = [&](ValueId id) { return id.index >= first.index; };
    const Formula later = walk_formula(from_, from_[sum].operands[0], is_later, is_short);
    return is_short(later) && llvm::none_of(later.computed, [&](ValueId id) {
             return beside_.contains(id) || writes_state(from_[id]);
           });
  }

  /// The value that stands for `id`, with what it depends on where that is not there yet.
  ValueId made(ValueId id) {
    if (rewriter_[id].valid()) return rewriter_[id];
    Op op = from_[id];
    for (ValueId& operand : op.operands) operand = made(operand);
    return rewriter_[id] = rewriter_.add(std::move(op));
  }

  void make_sums(llvm::ArrayRef<ValueId> sums) {
    llvm::SmallVector<ValueId, 4> operands;
    for (ValueId sum : sums) operands.push_back(made(from_[sum].operands[0]));
    const Op& first = from_[sums[0]];
    const ValueId runs =
        builder_.op(OpKind::run_sums, operands,
                    Attributes().set(AttrName::runs, runs_of(first)->size), first.name + ".runs");
    for (size_t k = 0; k < sums.size(); ++k)
      rewriter_[sums[k]] = joined(runs, static_cast<int64_t>(k), from_[sums[k]]);
  }

  /// The sum from the runs, each padded to a chunk of 8.
  ValueId joined(ValueId runs, int64_t number, const Op& sum) {
    const Dims dims = builder_.type(runs).dims;
    const ValueId part = dims[1].is(1) ? runs : builder_.slice(runs, 1, number, Dim(1));
    const ValueId zeros = builder_.constant(0, DType::f32, {dims[0], Dim(kChunk - 1), dims[2]});
    const ValueId padded =
        builder_.op(OpKind::concat, {part, zeros}, Attributes().set(AttrName::axis, int64_t{1}));
    const bool same = sum.type == TensorType{DType::f32, {Dim(1), Dim(1), dims[2]}};
    const ValueId total =
        builder_.reduce(OpKind::reduce_sum, padded, {0, 1}, same ? sum.name : sum.name + ".joined");
    if (same) return total;
    const ValueId shaped = builder_.reshape(total, sum.type.dims);
    // No view: an output has a place in memory of its own.
    return sum.type.dtype == DType::f32 ? builder_.op(OpKind::copy, {shaped}, {}, sum.name)
                                        : builder_.cast(shaped, sum.type.dtype, sum.name);
  }

  std::map<ValueId, std::set<ValueId>> reductions_;  // of rows, with the values that they read
  std::map<ValueId, std::vector<ValueId>> readers_;  // by value: those reductions
  std::map<ValueId, llvm::SmallVector<ValueId, 4>> sums_;  // that a reduction's kernel makes
  std::map<ValueId, ValueId> beside_;                      // by sum: the reduction
};

}  // namespace

bool run_sums(Module& module) { return replace_ops<RunSums>(module, OpKind::reduce_sum); }

}  // namespace sinter
