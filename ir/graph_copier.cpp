#include "ir/graph_copier.h"

namespace sinter {

GraphCopier::GraphCopier(const Graph& from, Graph& into)
    : GraphCopier(from, into, [](ValueId) { return false; }) {
  for (ValueId id : from.inputs) (*this)(id);
}

GraphCopier::GraphCopier(const Graph& from, Graph& into, std::function<bool(ValueId)> is_outside)
    : from_(from), into_(into), is_outside_(std::move(is_outside)) {}

ValueId GraphCopier::operator()(ValueId id) {
  if (const auto known = copies_.find(id.index); known != copies_.end()) return known->second;
  const Op& original = from_[id];
  Op op = is_outside_(id) ? Op{OpKind::input, original.type, {}, {}, original.name} : original;
  for (ValueId& operand : op.operands) operand = (*this)(operand);
  const bool is_input = op.kind == OpKind::input;
  const ValueId copy = into_.add(std::move(op));
  if (is_input) {
    into_.inputs.push_back(copy);
    inputs_.push_back(id);
  }
  return copies_[id.index] = copy;
}

}  // namespace sinter
