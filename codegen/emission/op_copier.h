// A part of a graph as a graph of its own.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sinter {

/// Copies ops from one graph to another on demand, with what they read; the inputs at once.
class OpCopier {
 public:
  OpCopier(const Graph& from, Graph& into) : from_(from), into_(into), copies_(from.size()) {
    for (ValueId id : from.inputs) into.inputs.push_back(copies_[id.index] = into.add(from[id]));
  }
  ValueId operator()(ValueId id) {
    if (copies_[id.index].valid()) return copies_[id.index];
    Op op = from_[id];
    for (ValueId& operand : op.operands) operand = (*this)(operand);
    return copies_[id.index] = into_.add(std::move(op));
  }
  void define(ValueId id, ValueId copy) { copies_[id.index] = copy; }

 private:
  const Graph& from_;
  Graph& into_;
  std::vector<ValueId> copies_;
};

}  // namespace sinter
