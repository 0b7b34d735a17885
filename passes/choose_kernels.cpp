#include "passes/choose_kernels.h"

#include "ir/builder.h"
#include "ir/graph_rewriter.h"
#include "kernels/registry.h"

namespace sinter {
namespace {

std::optional<ValueId> chosen(Builder& builder, const Op& op, const FamilyChoice& choice) {
  for (const KernelFamily* family : kernel_families())
    if (family->choose && !llvm::is_contained(choice.left_out, family->name) &&
        (!family->on_request || llvm::is_contained(choice.requested, family->name)))
      if (const auto own = family->choose(builder, op)) return own;
  return std::nullopt;
}

}  // namespace

bool choose_kernels(Module& module, const FamilyChoice& choice) {
  bool changed = false;
  for (Entry& entry : module.entries) {
    Graph& graph = entry.graph;
    Graph result;
    Builder builder(result, module.symbols);
    GraphRewriter rewriter(graph, result);
    rewriter.rewrite([&](ValueId, Op op) {
      const std::optional<ValueId> own = chosen(builder, op, choice);
      changed |= own.has_value();
      return own ? *own : rewriter.add(std::move(op));
    });
    graph = std::move(result);
  }
  return changed;
}

}  // namespace sinter
