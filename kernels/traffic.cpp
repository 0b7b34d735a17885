#include "kernels/traffic.h"

#include <algorithm>

#include "ir/op_roles.h"
#include "kernels/family.h"

namespace sinter {

namespace {

/// Bytes of the elements that the op walks, as many as it makes unless it is a reduction.
double walked_bytes(const FusionProblem& problem, ValueId id) {
  const Op& op = problem.graph()[id];
  if (op_class(op) != OpClass::reduce) return problem.bytes(id);
  double product = average_bytes(op.type.dtype);
  for (Dim dim : problem.facts(id).walked()) product *= problem.extent(dim);
  return product;
}

}  // namespace

double traffic(const FusionProblem& problem, Members members) {
  const Graph& graph = problem.graph();
  double total = 0;
  llvm::SmallVector<ValueId, 8> read;
  for (ValueId member : members) {
    const bool whole = problem.family(member) && problem.ports(member).any_open();
    for (const Read& r : problem.facts(member).reads) {
      if (std::binary_search(members.begin(), members.end(), r.root) ||
          llvm::is_contained(read, r.root))
        continue;
      read.push_back(r.root);
      // A gather, or a part of a larger value, moves at most what the reader walks.
      total += whole ? problem.bytes(r.root)
                     : std::min(problem.bytes(r.root), average_bytes(graph[r.root].type.dtype) /
                                                           average_bytes(graph[member].type.dtype) *
                                                           walked_bytes(problem, member));
    }
    const bool stored = writes_state(graph[member]) || problem.read_outside(member, members);
    if (stored) total += problem.bytes(member);
  }
  return total;
}

size_t pointers(const FusionProblem& problem, Members members) {
  size_t count = 0;
  for (ValueId member : members) count += 1 + problem.facts(member).reads.size();
  return count;
}

}  // namespace sinter
