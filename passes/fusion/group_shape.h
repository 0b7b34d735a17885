// The requirements of a group of ops on its kernel.
#pragma once

#include "kernels/group.h"

namespace sinter {

/// The shape of a kernel that computes one op.
GroupShape shape_of(const FusionProblem& problem, ValueId id);

/// Leading axes that make a row of `members`, where `shape` is known but for its rows.
uint32_t row_axes(const FusionProblem& problem, Members members, const GroupShape& shape);

}  // namespace sinter
