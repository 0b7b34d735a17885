#include "passes/rewrite_graph.h"

namespace sinter {

std::vector<llvm::SmallVector<ValueId, 2>> readers_of(const Graph& graph) {
  auto readers = graph.users();
  for (ValueId id : graph.outputs) readers[id.index].push_back(id);
  return readers;
}

}  // namespace sinter
