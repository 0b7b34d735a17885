#include "ir/state_reads.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/op_roles.h"

namespace sinter {

bool reads_state(const Graph& graph, const Op& op) {
  return llvm::any_of(op.operands, [&](ValueId operand) {
    return is_state_version(graph[root_of(graph, operand)]);
  });
}

ValueId StateWriters::writer_of(ValueId value) {
  const ValueId version = root_of(graph_, value);
  if (!is_state_version(graph_[version])) return {};
  for (; seen_ < graph_.size(); ++seen_)
    if (const Op& op = graph_.ops()[seen_]; writes_state(op))
      writers_.try_emplace(operand_with(op, OperandRole::state).index, ValueId{seen_});
  return writers_.lookup(version.index);
}

}  // namespace sinter
