// A graph that is made from another one, op by op.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sinter {

/// Walks the ops of a graph in their order and adds what stands for them to another graph.
class GraphRewriter {
 public:
  GraphRewriter(const Graph& from, Graph& into) : from_(from), into_(into), values_(from.size()) {}

  /// The value that stands for a value of the old graph; invalid: there is none yet.
  ValueId& operator[](ValueId id) { return values_[id.index]; }
  /// Adds an op whose operands are values of the new graph.
  ValueId add(Op op) { return into_.add(std::move(op)); }

  /// `make(id, op)` returns the value that stands for the old value `id`; invalid: none, and no op
  /// may read it. `op` is the old op with operands of the new graph.
  template <typename Make>
  void rewrite_ops(Make&& make) {
    for (uint32_t i = 0; i < from_.size(); ++i) {
      Op op = from_.ops()[i];
      for (ValueId& operand : op.operands) operand = values_[operand.index];
      const ValueId made = make(ValueId{i}, std::move(op));
      values_[i] = made;
    }
  }
  /// The same, and the values that stand for inputs and outputs become the new graph's inputs and
  /// outputs.
  template <typename Make>
  void rewrite(Make&& make) {
    rewrite_ops(make);
    for (ValueId id : from_.inputs)
      if (values_[id.index].valid()) into_.inputs.push_back(values_[id.index]);
    for (ValueId id : from_.outputs)
      if (values_[id.index].valid()) into_.outputs.push_back(values_[id.index]);
  }

 private:
  const Graph& from_;
  Graph& into_;
  std::vector<ValueId> values_;
};

}  // namespace sinter
