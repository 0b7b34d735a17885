// Row numbers among the inputs of an entry.
#pragma once

#include "plan/program.h"

namespace sinter {

/// An error where a kernel takes an input's row numbers for addresses without comparing them, or
/// nothing looks at them after a call: such a plan needs its inputs checked before a call, which
/// nobody can do in device memory.
Status require_checked_inputs(const Program& program, const EntryPlan& entry);

}  // namespace sinter
