// Groups around one op of tests/support/custom_ops.h each.
#pragma once

#include "codegen/groups.h"

namespace sinter {

extern const std::vector<GroupText> kCustomGroups;

}  // namespace sinter
