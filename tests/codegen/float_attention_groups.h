// Groups as text around one float_attention each, with a prologue and an epilogue.
#pragma once

#include "codegen/groups.h"

namespace sinter {

/// Groups of element type f32. The first has heads of WIDTH elements.
extern const std::vector<GroupText> kFloatAttentionGroups;

}  // namespace sinter
