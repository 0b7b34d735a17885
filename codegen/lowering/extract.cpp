#include "codegen/lowering/extract.h"

#include "ir/graph_copier.h"
#include "ir/op_roles.h"
#include "ir/row_numbers.h"

namespace sinter {

std::vector<uint8_t> values_that_leave(const Graph& graph, const Grouping& grouping,
                                       llvm::ArrayRef<Symbol> symbols) {
  std::vector<uint8_t> leave(graph.size(), 0);
  for (ValueId id : graph.outputs) leave[root_of(graph, id).index] = 1;
  for (const RowNumbers& numbers : numbers_to_check(graph, symbols))
    leave[numbers.values.index] = 1;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (writes_state(op)) leave[i] = 1;
    if (!computes(op)) continue;
    for (ValueId operand : op.operands) {
      const uint32_t root = root_of(graph, operand).index;
      if (grouping.group_of[root] != grouping.group_of[i]) leave[root] = 1;
    }
  }
  return leave;
}

void set_canonical_names(Graph& graph) {
  size_t value = 0, input = 0;
  for (ValueId id : graph.inputs) graph[id].name = fmt::format("x{}", input++);
  for (Op& op : graph.mutable_ops())
    if (op_class(op) != OpClass::leaf) op.name = fmt::format("v{}", value++);
}

ExtractedGroup extract_group(const Graph& graph, const Grouping& grouping, uint32_t group,
                             llvm::ArrayRef<uint8_t> leaves) {
  ExtractedGroup result;
  // Views and generators are copied wherever they are read.
  GraphCopier copy(graph, result.graph, [&](ValueId id) {
    const OpClass kind = op_class(graph[id]);
    return kind != OpClass::view && kind != OpClass::generator &&
           grouping.group_of[id.index] != group;
  });
  const auto& members = grouping.groups[group].members;
  for (ValueId member : members) copy(member);
  for (ValueId member : members) {
    if (!leaves[member.index]) continue;
    result.graph.outputs.push_back(copy(member));
    result.outputs.push_back(member);
  }
  result.inputs.assign(copy.inputs().begin(), copy.inputs().end());
  set_canonical_names(result.graph);
  return result;
}

}  // namespace sinter
