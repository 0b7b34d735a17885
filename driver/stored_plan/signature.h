// Whether a plan can be called as its module says.
#pragma once

#include "plan/program.h"

namespace sinter {

/// An error where symbols differ, or where an entry of the plan is not one of the module's with the
/// same inputs and outputs: names, types and order. A plan may have fewer entries. `place` is the
/// plan's; `whose` the module is, for messages: "its module".
Status check_signature(const Program& program, const Module& module, const std::string& whose,
                       const std::string& place);

}  // namespace sinter
