#include "passes/choose_kernels.h"

#include "ir/builder.h"
#include "kernels/registry.h"

namespace sinter {
namespace {

std::optional<ValueId> chosen(Builder& builder, const Op& op,
                              llvm::ArrayRef<std::string> left_out) {
  for (const KernelFamily* family : kernel_families())
    if (family->choose && !llvm::is_contained(left_out, family->name))
      if (const auto own = family->choose(builder, op)) return own;
  return std::nullopt;
}

}  // namespace

bool choose_kernels(Module& module, llvm::ArrayRef<std::string> left_out) {
  bool changed = false;
  for (Entry& entry : module.entries) {
    Graph& graph = entry.graph;
    Graph result;
    Builder builder(result, module.symbols);
    std::vector<ValueId> copies(graph.size());
    for (uint32_t i = 0; i < graph.size(); ++i) {
      Op op = graph.ops()[i];
      for (ValueId& operand : op.operands) operand = copies[operand.index];
      const std::optional<ValueId> own = chosen(builder, op, left_out);
      changed |= own.has_value();
      copies[i] = own ? *own : result.add(std::move(op));
    }
    for (ValueId id : graph.inputs) result.inputs.push_back(copies[id.index]);
    for (ValueId id : graph.outputs) result.outputs.push_back(copies[id.index]);
    graph = std::move(result);
  }
  return changed;
}

}  // namespace sinter
