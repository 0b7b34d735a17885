// The judge: the only place that answers whether two groups may share a kernel. It asks and changes
// nothing; Groups::merge acts on its decisions.
#pragma once

#include "passes/fusion/fusion_state.h"

namespace sinter {

/// May the groups of ops `a` and `b`, which are two groups, share a kernel?
Decision judge(const FusionState& state, ValueId a, ValueId b);

/// Gives a refusal for convexity of these ops its path. Apart from judge, which the engine asks
/// often and without need of paths.
void add_witness(const Groups& groups, ValueId a, ValueId b, Verdict& verdict);

}  // namespace sinter
