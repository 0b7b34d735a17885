// A graph that is made from another one, op by op.
#pragma once

#include <llvm/ADT/STLExtras.h>

#include <vector>

#include "ir/state_reads.h"

namespace sinter {

/// Walks the ops of a graph in their order and adds what stands for them to another graph. A rule
/// that reads a value at another place than the op that read it asks may_read or may_compute. An op
/// that is added without the question, behind the op that overwrites what it reads, is a broken
/// invariant.
class GraphRewriter {
 public:
  GraphRewriter(const Graph& from, Graph& into)
      : from_(from), into_(into), values_(from.size()), old_writers_(from), new_writers_(into) {}

  /// The value that stands for a value of the old graph; invalid: there is none yet.
  ValueId& operator[](ValueId id) { return values_[id.index]; }
  /// Adds an op whose operands are values of the new graph.
  ValueId add(Op op) {
    const ValueId id = into_.add(std::move(op));
    check_reads();
    return id;
  }

  /// The op that stands for `reader` may read `value`; both are of the old graph. No reader: any op
  /// behind the value may, wherever it stands.
  bool may_read(ValueId value, ValueId reader = {}) {
    return !(old_writers_.writer_of(value) < reader);
  }
  /// The op `id` may be computed again there: it may read its operands there.
  bool may_compute(ValueId id, ValueId reader = {}) {
    return llvm::all_of(from_[id].operands, [&](ValueId read) { return may_read(read, reader); });
  }

  /// `make(id, op)` returns the value that stands for the old value `id`; invalid: none, and no op
  /// may read it. `op` is the old op with operands of the new graph.
  template <typename Make>
  void rewrite_ops(Make&& make) {
    for (uint32_t i = 0; i < from_.size(); ++i) {
      Op op = from_.ops()[i];
      for (ValueId& operand : op.operands) operand = values_[operand.index];
      const ValueId made = make(ValueId{i}, std::move(op));
      values_[i] = made;
      check_reads();
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
  /// No new op may read a version of a state that an op before it has overwritten.
  void check_reads();

  const Graph& from_;
  Graph& into_;
  std::vector<ValueId> values_;
  StateWriters old_writers_, new_writers_;
  uint32_t checked_ = 0;  // ops of the new graph
};

}  // namespace sinter
