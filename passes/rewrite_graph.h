// Passes that make each entry's graph anew.
#pragma once

#include "ir/builder.h"
#include "ir/graph_rewriter.h"
#include "ir/variants.h"

namespace sinter {

/// By value of a graph: the ops that read it. An output is its own reader.
using Readers = llvm::ArrayRef<llvm::SmallVector<ValueId, 2>>;
inline std::vector<llvm::SmallVector<ValueId, 2>> readers_of(const Graph& graph) {
  auto readers = graph.users();
  for (ValueId id : graph.outputs) readers[id.index].push_back(id);
  return readers;
}

/// run(graph, builder, rewriter) makes a new graph with the builder and the rewriter, and returns
/// whether it differs. The new graph, without dead ops, then takes the place of the old one.
template <typename Run>
bool rewrite_graph(Graph& graph, llvm::ArrayRef<Symbol> symbols, Run&& run) {
  Graph result;
  Builder builder(result, symbols);
  GraphRewriter rewriter(graph, result);
  if (!run(std::as_const(graph), builder, rewriter)) return false;
  remove_dead_ops(result);
  make_names_unique(result);
  graph = std::move(result);
  return true;
}

/// The same for each entry of which `concerns(op)` holds for some op. True if some graph changed.
template <typename Concerns, typename Run>
bool rewrite_graphs(Module& module, Concerns&& concerns, Run&& run) {
  bool changed = false;
  for (Entry& entry : module.entries)
    if (llvm::any_of(entry.graph.ops(), concerns))
      changed |= rewrite_graph(entry.graph, narrowed(module.symbols, entry.range), run);
  return changed;
}

/// The part that all rules of replace_ops have.
class RewriteRule {
 public:
  RewriteRule(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : from_(from), builder_(builder), rewriter_(rewriter) {}

 protected:
  const Graph& from_;
  Builder& builder_;
  GraphRewriter& rewriter_;
};

/// Makes a graph by a `Rule`, which is asked for each op in order: replaced(id, op) returns the
/// value that stands for the old value `id`, perhaps an invalid one; nullopt: the op stays. `op` is
/// the old op with operands of the new graph. `more`: arguments of the rule behind the first three.
template <typename Rule, typename... More>
auto by_rule(More... more) {
  return [=](const Graph& graph, Builder& builder, GraphRewriter& rewriter) {
    Rule rule(graph, builder, rewriter, more...);
    bool changed = false;
    rewriter.rewrite([&](ValueId id, Op op) {
      const std::optional<ValueId> replaced = rule.replaced(id, op);
      changed |= replaced.has_value();
      return replaced ? *replaced : rewriter.add(std::move(op));
    });
    return changed;
  };
}
template <typename Rule, typename Concerns, typename... More>
bool replace_ops(Module& module, Concerns&& concerns, More... more) {
  return rewrite_graphs(module, concerns, by_rule<Rule>(more...));
}
template <typename Rule, typename... More>
bool replace_ops(Module& module, OpKind kind, More... more) {
  return replace_ops<Rule>(
      module, [kind](const Op& op) { return op.kind == kind; }, more...);
}

}  // namespace sinter
