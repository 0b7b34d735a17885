// Where an op may read a version of a state: before the op that writes the next version (V16).
#pragma once

#include <llvm/ADT/DenseMap.h>

#include "ir/graph.h"

namespace sinter {

/// An operand is a version of a state, perhaps through views.
bool reads_state(const Graph& graph, const Op& op);

/// The ops that write the next versions of the states of a graph, which may grow. Passes do not ask
/// it: they ask GraphRewriter, or Builder about the end of a new graph.
class StateWriters {
 public:
  explicit StateWriters(const Graph& graph) : graph_(graph) {}

  /// The op that overwrites the version of a state that `value` is, perhaps through views; invalid:
  /// none does.
  ValueId writer_of(ValueId value);

 private:
  const Graph& graph_;
  llvm::DenseMap<uint32_t, ValueId> writers_;  // by version
  uint32_t seen_ = 0;                          // ops of the graph
};

}  // namespace sinter
