// Checks every invariant of a module; the list stands at the top of verifier.cpp.
#pragma once

#include "ir/graph.h"

namespace sinter {

Status verify(const Module& module);

}  // namespace sinter
