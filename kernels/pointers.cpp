#include "kernels/pointers.h"

#include <llvm/ADT/DenseSet.h>

#include <algorithm>

#include "ir/op_roles.h"

namespace sinter {

size_t pointers(const FusionProblem& problem, Members members) {
  const auto inside = [&](ValueId id) {
    return std::binary_search(members.begin(), members.end(), id);
  };
  llvm::DenseSet<uint32_t> read;
  size_t written = 0;
  for (ValueId member : members) {
    written += problem.read_outside(member, members) || writes_state(problem.graph()[member]);
    for (const Read& one : problem.facts(member).reads)
      if (!inside(one.root)) read.insert(one.root.index);
  }
  return read.size() + written;
}

}  // namespace sinter
