#include "passes/choose_kernels.h"

#include "ir/builder.h"
#include "ir/graph_rewriter.h"
#include "ir/variants.h"
#include "kernels/registry.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// `op`, the value `id` of `from`, whose operands are values of the builder's graph.
std::optional<ValueId> chosen(Builder& builder, const Op& op, const Entry& from, ValueId id,
                              Readers readers, const Recipe& recipe) {
  for (const KernelFamily* family : kernel_families()) {
    if (!family->choose) continue;
    const Permission may = family->permission ? family->permission(recipe) : Permission::always;
    if (may == Permission::never ||
        (may == Permission::where_it_gains && !family->gains(from.graph, id, readers)))
      continue;
    if (const auto own = family->choose(builder, op, from.tokens)) return own;
  }
  return std::nullopt;
}

/// The matrix of codes of a product that reads it rounded to the type of its other operand.
std::optional<ValueId> unrounded_matrix(const Graph& graph, const Op& op) {
  if (!is_without_order(op, OpKind::linear)) return std::nullopt;
  const Op& matrix = graph[op.operands[1]];
  if (matrix.kind != OpKind::cast || graph[matrix.operands[0]].kind != OpKind::dequantize)
    return std::nullopt;
  return matrix.operands[0];
}

/// A product with a matrix of float32 and an operand of another type, for which no family has a
/// kernel, is one of float32: its operands are widened, which is exact, and the result is rounded.
/// Or, where that was asked for, the matrix is rounded to the operand's type.
std::optional<ValueId> of_one_type(Builder& b, const Op& op, const Recipe& recipe) {
  if (!is_without_order(op, OpKind::linear) ||
      b.type(op.operands[0]).dtype == b.type(op.operands[1]).dtype)
    return std::nullopt;
  if (recipe.codes == Recipe::Codes::rounded) {
    llvm::SmallVector<ValueId, 3> rounded = op.operands;
    rounded[1] = b.cast(op.operands[1], b.type(op.operands[0]).dtype, op.name + ".rounded");
    return b.op(OpKind::linear, rounded, op.attrs, op.name);
  }
  llvm::SmallVector<ValueId, 3> operands;
  for (ValueId id : op.operands) operands.push_back(b.cast(id, DType::f32, op.name + ".operand"));
  return b.cast(b.op(OpKind::linear, operands, {}, op.name + ".wide"), op.type.dtype, op.name);
}

}  // namespace

std::optional<Graph> with_chosen_kernels(const Entry& entry, llvm::ArrayRef<Symbol> symbols,
                                         const Recipe& recipe) {
  bool changed = false;
  Graph result;
  Builder builder(result, symbols);
  GraphRewriter rewriter(entry.graph, result);
  const auto readers = readers_of(entry.graph);
  rewriter.rewrite([&](ValueId id, Op op) {
    if (recipe.codes == Recipe::Codes::unrounded)
      if (const auto matrix = unrounded_matrix(result, op)) op.operands[1] = *matrix;
    std::optional<ValueId> own = chosen(builder, op, entry, id, readers, recipe);
    if (!own) own = of_one_type(builder, op, recipe);
    changed |= own.has_value();
    return own ? *own : rewriter.add(std::move(op));
  });
  if (!changed) return std::nullopt;
  make_names_unique(result);
  return result;
}

std::vector<ValueId> rounded_matrices(const Graph& graph) {
  std::vector<ValueId> casts;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (const Op& op = graph.ops()[i]; op.kind == OpKind::cast &&
                                       graph[op.operands[0]].kind == OpKind::dequantize &&
                                       dtype_info(op.type.dtype).bits == 16)
      casts.push_back(ValueId{i});
  return casts;
}

bool choose_kernels(Module& module, const Recipe& recipe) {
  bool changed = false;
  for (Entry& entry : module.entries) {
    auto graph = with_chosen_kernels(entry, narrowed(module.symbols, entry.range), recipe);
    if (!graph) continue;
    entry.graph = std::move(*graph);
    changed = true;
  }
  return changed;
}

}  // namespace sinter
