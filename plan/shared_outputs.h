// Outputs of an entry that lie in the memory of its inputs, as a parameter that a call changes.
#pragma once

#include "plan/program.h"

namespace sinter {

/// Whether a call may give output `output` of the entry the memory of input `input`, both by their
/// index in the entry: they have one type; the input is no output, no other input and holds no row
/// numbers that are looked at after the call; one step writes the output, as the only value of its
/// place in the arena; and no step reads the input from then on, except the kernel that writes the
/// output, if it may overwrite the input. The program has passed check().
bool may_share_memory(const Program& program, const EntryPlan& entry, size_t output, size_t input);

/// A thread of the kernel reads an element of the pair's input before it overwrites it with the
/// output's (ir/in_place.h), and the two pointers are not __restrict__: the kernel waits (Overlap),
/// or lists the pair in Kernel::in_place.
bool may_overwrite(const Kernel& kernel, const InPlace& pair, llvm::ArrayRef<Symbol> symbols);

/// arena_layout() of a call whose outputs are apart. `shared`: by output, whether no other value
/// may lie in its memory before it is written: it is an input's, or the call gets it later.
std::optional<ArenaLayout> arena_layout(const EntryPlan& entry,
                                        llvm::ArrayRef<int64_t> symbol_values,
                                        const std::vector<bool>& shared);

}  // namespace sinter
