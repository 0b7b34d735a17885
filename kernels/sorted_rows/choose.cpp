// Tokens multiply their experts' matrices in runs of rows that chose the same one:
//
//   %y = expert_linear %x, %w, %e          more than kMaxDirectTokens tokens
//   =>
//   %positions = sorted_positions %e {count = E}
//   %places = sorted_places %e {count = E}
//   %ends = run_ends %e {count = E}
//   %s = embedding %x, %positions            where x is [N, K]: of x broadcast to [N, k, K]
//   %r = grouped_linear %s, %w, %ends
//   %y = embedding %r, %places
//
// Where %x was computed row by row from rows that were sorted by the same numbers, it is computed
// from these in their order, and nothing moves rows between the two products. A row's bits do not
// depend on other rows: grouped_linear adds each element's products in the order tiled_linear.
#include <llvm/ADT/STLExtras.h>

#include <map>

#include "ir/builder.h"
#include "ir/cheap_ops.h"
#include "ir/infer.h"
#include "ir/row_numbers.h"
#include "kernels/family.h"

namespace sinter {
namespace {

/// The most tokens whose products read a matrix for each pair of a token and an expert. From six on
/// runs were measured to be faster, but a variant for six to eight would be one more to compile
/// (bench/log/experts.md, "Many tokens").
constexpr int64_t kMaxDirectTokens = 8;

Attributes sort_attrs(Dim count) { return Attributes().set(AttrName::count, count.constant()); }

/// Rows sorted by the numbers `experts`; adds ops to the builder's graph.
class SortedRows {
 public:
  SortedRows(Builder& b, ValueId experts, Dim count)
      : b_(b), experts_(experts), pairs_(b.type(experts).dims), attrs_(sort_attrs(count)) {}

  ValueId positions() { return of_numbers(OpKind::sorted_positions); }
  ValueId places() { return of_numbers(OpKind::sorted_places); }
  ValueId ends() { return of_numbers(OpKind::run_ends); }

  /// The rows of x, [N, k, K] or [N, K], in the order of the positions.
  ValueId sorted(ValueId x, const std::string& name) {
    if (const ValueId known = sorted_rows(x, kMaxOps); known.valid()) return known;
    if (b_.type(x).rank() == 2) {
      const Dims dims = b_.type(x).dims;
      x = b_.reshape(x, {dims[0], Dim(1), dims[1]});
      x = b_.op(OpKind::broadcast, {x},
                Attributes().set(AttrName::dims, Dims{pairs_[0], pairs_[1], dims[1]}));
    }
    return b_.op(OpKind::embedding, {x, positions()}, {}, name);
  }

 private:
  /// Ops between two products of a token's experts: an activation has few.
  static constexpr int kMaxOps = 32;

  /// The op of the numbers, which the graph may have.
  ValueId of_numbers(OpKind kind) {
    const Graph& graph = b_.graph();
    for (auto i = static_cast<uint32_t>(graph.size()); i-- > experts_.index;)
      if (const Op& op = graph.ops()[i];
          op.kind == kind && op.operands[0] == experts_ && op.attrs == attrs_)
        return ValueId{i};
    return b_.op(kind, {experts_}, attrs_,
                 fmt::format("{}.{}", graph[experts_].name, op_info(kind).name));
  }

  bool has_rows(DimsRef dims) const {
    return dims.size() == 3 && dims.take_front(2) == DimsRef(pairs_);
  }

  /// x in the order of the positions, computed from rows in that order by at most `max_ops` ops,
  /// one after the other; invalid: it is not.
  ValueId sorted_rows(ValueId x, int max_ops) {
    const Op op = b_.graph()[x];
    if (!has_rows(op.type.dims) || max_ops == 0) return {};
    const auto [at, is_new] = sorted_.try_emplace(x);
    if (!is_new) return at->second;
    const ValueId made = make_sorted(op, max_ops);
    return sorted_[x] = made;
  }
  ValueId make_sorted(const Op& op, int max_ops) {
    if (op.kind == OpKind::embedding) {
      const Op& places = b_.graph()[op.operands[1]];
      const bool is_sorted = places.kind == OpKind::sorted_places &&
                             places.operands[0] == experts_ && places.attrs == attrs_ &&
                             has_rows(b_.type(op.operands[0]).dims);
      return is_sorted ? op.operands[0] : ValueId();
    }
    const bool is_slice = op.kind == OpKind::slice && op.attrs.get<int64_t>(AttrName::axis) == 2;
    if (!is_slice && !has_elementwise_form(op)) return {};
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) {
      // Operands that all rows share have no axes of rows.
      const DimsRef dims = b_.type(operand).dims;
      const bool is_shared =
          llvm::all_of(dims.drop_back(dims.empty() ? 0 : 1), [](Dim dim) { return dim.is(1); });
      operands.push_back(is_shared && !is_slice ? operand : sorted_rows(operand, max_ops - 1));
      if (!operands.back().valid()) return {};
    }
    return b_.op(op.kind, operands, op.attrs, op.name + ".sorted");
  }

  Builder& b_;
  ValueId experts_;
  Dims pairs_;                         // the dims of the numbers
  Attributes attrs_;                   // of the sort
  std::map<ValueId, ValueId> sorted_;  // invalid: not by these numbers
};

}  // namespace

std::optional<ValueId> choose_sorted_rows(Builder& b, const Op& op, Tokens, const Recipe& recipe) {
  // The products run on tensor cores by warpgroups, in another order than products of few tokens.
  if (op.kind != OpKind::expert_linear || !recipe.has_wgmma || recipe.invariant ||
      recipe.products == Recipe::Products::library)
    return std::nullopt;
  const Graph& graph = b.graph();
  const TensorType x = b.type(op.operands[0]), w = b.type(op.operands[1]);
  if (SymExpr(op.type.dims[0]).upper_bound(b.symbols()) <= kMaxDirectTokens) return std::nullopt;
  // grouped_linear and the sort must take the operands.
  const TensorType rows_of_x{x.dtype, {op.type.dims[0], op.type.dims[1], x.dims.back()}};
  const bool fits =
      infer_type(OpKind::grouped_linear, {rows_of_x, w, {DType::i32, {w.dims[0]}}}, {},
                 b.symbols()) &&
      infer_type(OpKind::run_ends, {b.type(op.operands[2])}, sort_attrs(w.dims[0]), b.symbols());
  // Numbers that may name no matrix stay the op's, which is then checked.
  if (!fits || !are_known(graph, op.operands[2], SymExpr(w.dims[0]), false, b.symbols()))
    return std::nullopt;
  SortedRows rows(b, op.operands[2], w.dims[0]);
  const ValueId sorted = rows.sorted(op.operands[0], op.name + ".rows");
  const ValueId ends = rows.ends();
  const ValueId products =
      b.op(OpKind::grouped_linear, {sorted, op.operands[1], ends}, {}, op.name + ".sorted");
  return b.op(OpKind::embedding, {products, rows.places()}, {}, op.name);
}

}  // namespace sinter
