// Space for the values of an entry: offsets that hold for all values of the symbols.
#pragma once

#include "plan/program.h"

namespace sinter {

/// Sets offset_bytes of every arena buffer and returns the arena's size. Requires size_bytes,
/// first_step and last_step. Buffers whose lives do not meet may share a slot; a slot is as large
/// as the largest of its buffers, so only sizes of which one covers the other share.
SymExpr plan_arena(std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
