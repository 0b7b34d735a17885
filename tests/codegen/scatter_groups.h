// Groups of one scatter_add each, for all tests of its kernels.
#pragma once

#include <vector>

#include "codegen/groups.h"

namespace sinter {

extern const std::vector<GroupText> kScatterGroups;

}  // namespace sinter
