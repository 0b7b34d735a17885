// A part of a graph as a graph of its own, or as a part of another.
#pragma once

#include <functional>
#include <unordered_map>

#include "ir/graph.h"

namespace sinter {

/// Copies values of a graph into another on demand, each once, with all that they read.
class GraphCopier {
 public:
  /// The inputs of `from` are copied at once, so that they keep their order.
  GraphCopier(const Graph& from, Graph& into);
  /// Values for which `is_outside` is true become inputs of `into`, in the order in which they are
  /// first read.
  GraphCopier(const Graph& from, Graph& into, std::function<bool(ValueId)> is_outside);

  ValueId operator()(ValueId id);
  /// From now on `copy` stands for `id`.
  void define(ValueId id, ValueId copy) { copies_[id.index] = copy; }
  /// The values of `from` that became inputs of `into`, in the order of these inputs.
  llvm::ArrayRef<ValueId> inputs() const { return inputs_; }

 private:
  const Graph& from_;
  Graph& into_;
  std::function<bool(ValueId)> is_outside_;
  std::unordered_map<uint32_t, ValueId> copies_;  // a failed allocation leaves it as it was
  llvm::SmallVector<ValueId, 8> inputs_;
};

}  // namespace sinter
