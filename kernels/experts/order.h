// The order in which `expert_linear` adds the K products of an element, the same text on host and
// device, whatever the number of tokens: the order of `gemv` (kernels/gemv/order.h) without splits.
//
// Chunk c of 8 elements belongs to lane c mod 32. A lane starts at +0 and takes its chunks, and a
// chunk's elements, in ascending order, each by one fused multiply-add sum = fma(w, x, sum). Lanes
// combine by a butterfly with strides 1, 2, 4, 8, 16; the result is rounded once. In packed
// matrices a lane adds the chunks of a group by themselves and scales their sum, as gemv's do.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kExpertLanes = 32, kExpertChunk = 8;

}  // namespace sinter
