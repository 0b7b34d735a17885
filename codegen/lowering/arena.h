// Space for the values of an entry.
#pragma once

#include "plan/program.h"

namespace sinter {

/// A step writes buffer `after` in the memory of `before`, which no later step reads.
struct BufferInPlace {
  uint32_t before = 0, after = 0;
};

/// Sets the slot of every arena buffer. Requires size_bytes, first_step and last_step. Buffers of
/// one slot live at different times, except the buffers of `in_place`, which share a slot;
/// arena_layout() stacks buffers in the order of slot numbers.
void plan_arena(std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols,
                llvm::ArrayRef<BufferInPlace> in_place = {});

}  // namespace sinter
