#include "kernels/pointers.h"

namespace sinter {

size_t pointers(const FusionProblem& problem, Members members) {
  size_t count = 0;
  for (ValueId member : members) count += 1 + problem.facts(member).reads.size();
  return count;
}

}  // namespace sinter
