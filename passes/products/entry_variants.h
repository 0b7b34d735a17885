// An entry whose ops have different orders for different values of a symbol becomes several, its
// variants: one for each range of values.
//
//   symbol N in [1, 2048]
//   entry @main(%x: f16[N, 64]) -> (%y) {
//     %y = linear %x, %w
//   }
//   =>
//   entry @main(%x: f16[N, 64]) -> (%y) where N in [1, 1] { ... }
//   entry @main(%x: f16[N, 64]) -> (%y) where N in [2, 8] { ... }      its linear will be a gemv
//   entry @main(%x: f16[N, 64]) -> (%y) where N in [9, 2048] { ... }   a call of the library
//
// One token, the usual call, has kernels for one (an H100, a layer of 1,024 columns: 20.3 us; with
// those for up to 8 tokens 23.6).
// The ranges are those of the first symbol that makes a difference. An entry of invariant tokens
// stays one, so that its kernels have one order for chunks of any length. So does an entry with a
// mask_tiles, whose type depends on the largest values of the symbols: choose_kernels comes after.
//
// An invariant recipe has one order for every number. There, every entry becomes several where
// several kernels have that order (KernelFamily::form), such as one for few tokens.
#pragma once

#include "passes/products/choose_kernels.h"

namespace sinter {

/// True if something changed.
bool entry_variants(Module& module, const Recipe& recipe = {});

}  // namespace sinter
