// Composites to primitives: the choice of the decomposition, which stands in decompose_*.cpp, and
// graphs as a whole.
#include "ir/decompose.h"

#include "ir/common_subexpressions.h"
#include "ir/decomposition.h"
#include "ir/graph_rewriter.h"

namespace sinter {
namespace {

ValueId no_composite(Decomposition& d) {
  SINTER_CHECK(false, "{} is no composite", op_info(d.kind).name);
}

/// The decomposition of each composite, by OpKind. A composite without one does not link.
constexpr DecompositionRule* kDecompositions[] = {
#define SINTER_OP(name, op_class, ...)                     \
  [] {                                                     \
    if constexpr (OpClass::op_class == OpClass::composite) \
      return decompose_##name;                             \
    else                                                   \
      return no_composite;                                 \
  }(),
#define SINTER_ELEMENTWISE(...) no_composite,
#include "ir/ops.def"
};

}  // namespace

ValueId decompose(Builder& builder, OpKind kind, llvm::ArrayRef<ValueId> operands,
                  const Attributes& attrs, std::string name) {
  Decomposition composite{kind, builder, operands, attrs, std::move(name)};
  return kDecompositions[static_cast<size_t>(kind)](composite);
}

Graph decompose_all(const Graph& graph, llvm::ArrayRef<Symbol> symbols) {
  // Fresh names are a prefix that no name of the graph starts with, and a number.
  std::string prefix = "t";
  const auto is_fresh = [&](std::string_view name) { return name.starts_with(prefix); };
  while (llvm::any_of(graph.ops(), [&](const Op& op) { return is_fresh(op.name); })) prefix += "_";

  Graph result;
  Builder builder(result, symbols, prefix);
  GraphRewriter rewriter(graph, result);
  rewriter.rewrite([&](ValueId, Op op) {
    return op_class(op) == OpClass::composite
               ? decompose(builder, op.kind, op.operands, op.attrs, op.name)
               : rewriter.add(std::move(op));
  });
  merge_common_subexpressions(result, is_fresh);
  remove_dead_ops(result);
  return result;
}

}  // namespace sinter
