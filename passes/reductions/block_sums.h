// Sums over all rows of what kernels compute in blocks of rows: gradients of biases.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// A sum down the columns of results of kernels that can store sums of blocks of rows beside them
/// (KernelFamily::side_result), or of a concatenation of such results, becomes a sum of these sums:
///
///   %rows = concat %dq, %dk, %dv          bf16[B, 1024, 3 * D]
///   %wide = cast %rows
///   %bias = reduce_sum %wide {axes = [0, 1]}
///
///   %dq.blocks = reduce_sum of (cast of %dq, as [B, 16, 64, D]) along the axis of 64; %dk, %dv too
///   %bias = reduce_sum (concat of these, f32[B, 16, 1, 3 * D]) {axes = [0, 1, 2]}
///
/// The order of additions changes, in fused and unfused plans alike. True: something changed.
bool block_sums(Module& module);

}  // namespace sinter
