#include "ir/state_reads.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/op_roles.h"

namespace sinter {

bool reads_state(const Graph& graph, const Op& op) {
  return llvm::any_of(op.operands, [&](ValueId operand) {
    return is_state_version(graph[root_of(graph, operand)]);
  });
}

bool is_overwritten(const Graph& graph, ValueId value, ValueId at) {
  const ValueId version = root_of(graph, value);
  if (!is_state_version(graph[version])) return false;
  const auto later = graph.ops().slice(version.index, at.index - version.index);
  return llvm::any_of(later, [&](const Op& op) {
    return writes_state(op) && operand_with(op, OperandRole::state) == version;
  });
}

bool reads_overwritten(const Graph& graph, const Op& op, ValueId at) {
  return llvm::any_of(op.operands,
                      [&](ValueId operand) { return is_overwritten(graph, operand, at); });
}

}  // namespace sinter
