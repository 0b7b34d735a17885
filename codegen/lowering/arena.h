// Space for the values of an entry.
#pragma once

#include "plan/program.h"

namespace sinter {

/// A step writes buffer `after` in the place of `before`, which no later step reads.
struct BufferInPlace {
  uint32_t before = 0, after = 0;
};

/// Sets the slot of every arena buffer. Requires size_bytes, first_step and last_step. Buffers of
/// one slot live at different times, but for those of `in_place`, which have one slot; the numbers
/// of slots are the order in which arena_layout() puts buffers on one another.
void plan_arena(std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols,
                llvm::ArrayRef<BufferInPlace> in_place = {});

}  // namespace sinter
