// Heads of keys and values that are repeated before an attention are read once:
//
//   %more = broadcast of keys [B, R, 8, 1, 64] to [B, R, 8, 4, 64]      %rows = reshape %more
//   %y = attention %q, %rows, ... {heads = 32, kv_heads = 32}
//   =>
//   %y = attention %q, %keys, ... {heads = 32, kv_heads = 8}
#include <llvm/ADT/STLExtras.h>

#include "ir/contraction.h"
#include "ir/verify_graph.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// The axes of keys or values with their heads cut into those that are read once and repetitions.
Dims repeated_axes(DimsRef dims, int64_t heads, int64_t times) {
  Dims axes(dims.drop_back());
  const int64_t width = dims.back().constant() / heads;
  axes.append({Dim(heads / times), Dim(times), Dim(width)});
  return axes;
}

/// Each head of keys or values is followed by `times - 1` that repeat it.
bool repeats(const Graph& graph, ValueId id, int64_t heads, int64_t times) {
  const Dims axes = repeated_axes(graph[id].type.dims, heads, times);
  const auto view = strided_view(graph, id, axes);
  return view && view->strides[axes.size() - 2].is(0);
}

/// How often heads are repeated: the largest number for which keys and values are.
int64_t repetitions(const Graph& graph, const Op& op) {
  const int64_t heads = op.attrs.get<int64_t>(AttrName::kv_heads);
  if (graph[op.operands[1]].type.rank() + 2 > kMaxAxes) return 1;  // repeated_axes
  for (int64_t times = heads; times > 1; --times)
    if (heads % times == 0 && repeats(graph, op.operands[1], heads, times) &&
        repeats(graph, op.operands[2], heads, times))
      return times;
  return 1;
}

/// The heads that are read once.
ValueId without_repetitions(Builder& b, ValueId id, int64_t heads, int64_t times) {
  Dims axes = repeated_axes(b.type(id).dims, heads, times);
  Dims rows(DimsRef(axes).drop_back(3));
  rows.push_back(Dim(heads / times * axes.back().constant()));
  const auto axis = static_cast<int64_t>(axes.size()) - 2;
  return b.reshape(b.slice(b.reshape(id, axes), axis, 0, Dim(1)), rows);
}

class SharedHeads : RewriteRule {
 public:
  using RewriteRule::RewriteRule;

  std::optional<ValueId> replaced(ValueId id, Op& op) {
    if (!is_without_order(op, OpKind::attention)) return std::nullopt;
    const int64_t times = repetitions(from_, from_[id]);
    if (times == 1) return std::nullopt;
    const int64_t heads = op.attrs.get<int64_t>(AttrName::kv_heads);
    for (size_t operand : {1, 2})
      op.operands[operand] = without_repetitions(builder_, op.operands[operand], heads, times);
    op.attrs.set(AttrName::kv_heads, heads / times);
    return rewriter_.add(std::move(op));
  }
};

}  // namespace

bool shared_heads(Module& module) { return replace_ops<SharedHeads>(module, OpKind::attention); }

}  // namespace sinter
