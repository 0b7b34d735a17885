// Fast numerics: a kernel's values stay in float32 from its reads to its stores.
//
//   %v0 = add %x0, %x1 : bf16[N, 64]                %v0 = cast %x0 : f32[N, 64]
//   %v1 = rms_norm %v0, %x2 : bf16[N, 64]           %v1 = cast %x1 : f32[N, 64]
//                                              =>   %v2 = add %v0, %v1 : f32[N, 64]
//   outputs v0 v1                                   %v3 = cast %x2 : f32[64]
//                                                   %v4 = rms_norm %v2, %v3 : f32[N, 64]
//                                                   outputs (cast %v2) (cast %v4)
#pragma once

#include "ir/graph.h"

namespace sinter {

/// The group's graph with the same inputs and outputs in which no value of a 16-bit float type that
/// is computed is rounded before another op computes with it: only what is stored is, and what a
/// product's matrix is multiplied with. A value that leaves is rounded for its store alone. Where a
/// kernel sums blocks of rows (ir/side_results.h), its product and the value that it sums are
/// rounded, too. The graph as it is where it has no such rounding.
Graph without_inner_roundings(const Graph& group, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
