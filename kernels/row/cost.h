// The cost of a kernel that walks rows, with reductions or without.
#pragma once

#include "kernels/cost.h"

namespace sinter {

std::optional<KernelCost> row_cost(const GroupView& group, int64_t min_threads);

}  // namespace sinter
