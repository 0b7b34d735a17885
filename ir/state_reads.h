// Where an op may read a version of a state: before the op that writes the next version (V16).
#pragma once

#include "ir/graph.h"

namespace sinter {

/// An operand is a version of a state, perhaps through views. Another op that reads the operand in
/// the place of this one may stand behind the writer of the next version.
bool reads_state(const Graph& graph, const Op& op);

/// `value` is a version of a state, perhaps through views, whose next version is written before the
/// op `at`, or before an op that would be appended where `at` is the size of the graph.
bool is_overwritten(const Graph& graph, ValueId value, ValueId at);
/// An operand of `op` is overwritten before `at`, so that the op may not be computed again there.
bool reads_overwritten(const Graph& graph, const Op& op, ValueId at);

}  // namespace sinter
