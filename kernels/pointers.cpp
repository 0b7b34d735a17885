#include "kernels/pointers.h"

#include <algorithm>

namespace sinter {

size_t pointers(const FusionProblem& problem, Members members) {
  size_t count = 0;
  for (ValueId member : members) count += 1 + problem.facts(member).reads.size();
  return count;
}

size_t parameters(const FusionProblem& problem, Members members) {
  size_t count = 0;
  for (const auto& [root, bytes] : problem.reads(members))
    count += !std::binary_search(members.begin(), members.end(), root);
  for (ValueId member : members) count += problem.read_outside(member, members);
  return count;
}

}  // namespace sinter
