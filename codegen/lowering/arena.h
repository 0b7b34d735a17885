// Space for the values of an entry.
#pragma once

#include "plan/program.h"

namespace sinter {

/// Sets the slot of every arena buffer. Requires size_bytes, first_step and last_step. Buffers
/// whose lives do not meet may share a slot, whatever their sizes are: arena_layout() makes it as
/// large as the largest for the symbol values of a call.
void plan_arena(std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
