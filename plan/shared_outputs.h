// Outputs of an entry that lie in the memory of its inputs, as a parameter that a call changes.
#pragma once

#include "plan/program.h"

namespace sinter {

/// Whether a call may give output `output` of the entry the memory of input `input`, both by their
/// index in the entry: they have one type; the input is no output, no other input and holds no row
/// numbers that are looked at after the call; one step writes the output, as the only value of its
/// place in the arena; and no step reads the input from then on, except the kernel that writes the
/// output, if each of its threads reads an element before it overwrites it (ir/in_place.h) and its
/// pointers are not __restrict__: it waits (Overlap), or lists the pair in Kernel::in_place. The
/// program has passed check().
bool may_share_memory(const Program& program, const EntryPlan& entry, size_t output, size_t input);

/// arena_layout() of a call whose outputs are apart. `shared`: by output, whether no other value
/// may lie in its memory before it is written: it is an input's, or the call gets it later.
std::optional<ArenaLayout> arena_layout(const EntryPlan& entry,
                                        llvm::ArrayRef<int64_t> symbol_values,
                                        const std::vector<bool>& shared);

}  // namespace sinter
