#include "passes/choose_kernels.h"

#include "ir/builder.h"
#include "ir/graph_rewriter.h"
#include "ir/variants.h"
#include "kernels/registry.h"

namespace sinter {
namespace {

std::optional<ValueId> chosen(Builder& builder, const Op& op, Tokens tokens,
                              const FamilyChoice& choice) {
  for (const KernelFamily* family : kernel_families())
    if (family->choose && !llvm::is_contained(choice.left_out, family->name) &&
        (!family->on_request || llvm::is_contained(choice.requested, family->name)))
      if (const auto own = family->choose(builder, op, tokens)) return own;
  return std::nullopt;
}

}  // namespace

std::optional<Graph> with_chosen_kernels(const Entry& entry, llvm::ArrayRef<Symbol> symbols,
                                         const FamilyChoice& choice) {
  bool changed = false;
  Graph result;
  Builder builder(result, symbols);
  GraphRewriter rewriter(entry.graph, result);
  rewriter.rewrite([&](ValueId, Op op) {
    const std::optional<ValueId> own = chosen(builder, op, entry.tokens, choice);
    changed |= own.has_value();
    return own ? *own : rewriter.add(std::move(op));
  });
  if (!changed) return std::nullopt;
  return result;
}

bool choose_kernels(Module& module, const FamilyChoice& choice) {
  bool changed = false;
  for (Entry& entry : module.entries) {
    auto graph = with_chosen_kernels(entry, narrowed(module.symbols, entry.range), choice);
    if (!graph) continue;
    entry.graph = std::move(*graph);
    changed = true;
  }
  return changed;
}

}  // namespace sinter
