#include "codegen/lowering/extract.h"

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
    if (op_class(op) == OpClass::append) leave[i] = 1;
    if (!computes(op)) continue;
    for (ValueId operand : op.operands) {
      const uint32_t root = root_of(graph, operand).index;
      if (grouping.group_of[root] != grouping.group_of[i]) leave[root] = 1;
    }
  }
  return leave;
}

namespace {

class Extractor {
 public:
  Extractor(const Graph& from, const Grouping& grouping, uint32_t group)
      : from_(from), grouping_(grouping), group_(group) {}

  ExtractedGroup take() && { return std::move(result_); }

  /// The copy of `id` in the group's graph, made on first use with the views it is read through.
  ValueId copy(ValueId id) {
    for (const auto& [original, copied] : copies_)
      if (original == id) return copied;
    const Op& op = from_[id];
    const bool inside = op_class(op) == OpClass::view || op_class(op) == OpClass::generator ||
                        grouping_.group_of[id.index] == group_;
    ValueId copied;
    if (inside) {
      Op clone = op;
      for (ValueId& operand : clone.operands) operand = copy(operand);
      clone.name = fmt::format("v{}", next_++);
      copied = result_.graph.add(std::move(clone));
    } else {
      copied = result_.graph.add(
          Op{OpKind::input, op.type, {}, {}, fmt::format("x{}", result_.inputs.size())});
      result_.graph.inputs.push_back(copied);
      result_.inputs.push_back(id);
    }
    copies_.push_back({id, copied});
    return copied;
  }

  void output(ValueId id) {
    result_.graph.outputs.push_back(copy(id));
    result_.outputs.push_back(id);
  }

 private:
  const Graph& from_;
  const Grouping& grouping_;
  uint32_t group_;
  ExtractedGroup result_;
  llvm::SmallVector<std::pair<ValueId, ValueId>, 16> copies_;
  uint32_t next_ = 0;
};

}  // namespace

ExtractedGroup extract_group(const Graph& graph, const Grouping& grouping, uint32_t group,
                             llvm::ArrayRef<uint8_t> leaves) {
  Extractor extractor(graph, grouping, group);
  for (ValueId member : grouping.groups[group].members) extractor.copy(member);
  for (ValueId member : grouping.groups[group].members)
    if (leaves[member.index]) extractor.output(member);
  return std::move(extractor).take();
}

}  // namespace sinter
