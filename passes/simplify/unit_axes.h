// Extents of 1 between the axes of a value go, so that values of the same rows have the same axes.
//
//   %n = mul %x, %c : [8, 1, 512]                 =>   %n = mul %x', %c' : [8, 512]
//   %y = linear %n, %w : [8, 1, 64]                    %y = linear %n, %w : [8, 64]
//   %p = transpose %y {axes = [1, 0, 2]}               uses of %p read %y
//
// A decoder's step has one token of each sequence: its values are [B, 1, D], its queries [B, 1, H,
// D] and, behind a transposition that moves nothing, [B, H, 1, D]. A value keeps its last axis and,
// if it has two axes, at least two. Outputs, and ops whose axes have meanings of their own, such as
// `attention` and `einsum`, keep all axes; where an output [1, ...] is no product, all values keep
// their first axis, so that those that it is computed from have its rows.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool unit_axes(Module& module);

}  // namespace sinter
