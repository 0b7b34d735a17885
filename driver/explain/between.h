// The way from one value to another in an entry's graph.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sinter {

/// A shortest path of data between two ops that compute, whichever comes first, from the earlier to
/// the later and with both; views are left out. Ties go to the op that comes first. Empty: neither
/// needs the other.
std::vector<ValueId> path_between(const Graph& graph, ValueId a, ValueId b);

}  // namespace sinter
