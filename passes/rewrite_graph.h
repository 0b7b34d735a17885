// Passes that make each entry's graph anew.
#pragma once

#include "ir/builder.h"
#include "ir/graph_rewriter.h"
#include "ir/variants.h"

namespace sinter {

/// By value of a graph: the ops that read it. An output is its own reader.
using Readers = llvm::ArrayRef<llvm::SmallVector<ValueId, 2>>;
std::vector<llvm::SmallVector<ValueId, 2>> readers_of(const Graph& graph);

/// For each entry of which `concerns(op)` holds for some op: run(graph, builder, rewriter) makes a
/// new graph with the builder and the rewriter, and returns whether it differs. The new graph,
/// without dead ops, then takes the place of the old one. True if some graph changed.
template <typename Concerns, typename Run>
bool rewrite_graphs(Module& module, Concerns&& concerns, Run&& run) {
  bool changed = false;
  for (Entry& entry : module.entries) {
    if (llvm::none_of(entry.graph.ops(), concerns)) continue;
    Graph result;
    const std::vector<Symbol> symbols = narrowed(module.symbols, entry.range);
    Builder builder(result, symbols);
    GraphRewriter rewriter(entry.graph, result);
    if (!run(std::as_const(entry.graph), builder, rewriter)) continue;
    remove_dead_ops(result);
    make_names_unique(result);
    entry.graph = std::move(result);
    changed = true;
  }
  return changed;
}

/// Base of rules of replace_ops.
class GraphRule {
 public:
  GraphRule(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), builder_(builder), rewriter_(rewriter) {}

 protected:
  const Graph& from_;
  Builder& builder_;
  GraphRewriter& rewriter_;
};

/// The same by a `Rule`, made of the three and asked for each op in order: replaced(id, op) returns
/// the value that stands for the old value `id`, perhaps an invalid one; nullopt: the op stays.
/// `op` is the old op with operands of the new graph.
template <typename Rule, typename Concerns>
bool replace_ops(Module& module, Concerns&& concerns) {
  return rewrite_graphs(module, concerns,
                        [](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
                          Rule rule(graph, builder, rewriter);
                          bool changed = false;
                          rewriter.rewrite([&](ValueId id, Op op) {
                            const std::optional<ValueId> replaced = rule.replaced(id, op);
                            changed |= replaced.has_value();
                            return replaced ? *replaced : rewriter.add(std::move(op));
                          });
                          return changed;
                        });
}
template <typename Rule>
bool replace_ops(Module& module, OpKind kind) {
  return replace_ops<Rule>(module, [kind](const Op& op) { return op.kind == kind; });
}

}  // namespace sinter
