// Attention that is written in primitives becomes the op:
//
//   %s = einsum %q, %k {spec = "bhnd,bhtd->bhnt", dtype = f32}     scores
//   %t = mul %s, %scale    %u = add %t, %mask    %p = softmax %u
//   %c = cast %p           %y = einsum %c, %v {spec = "bhnt,bhtd->bhnd"}
//   =>
//   %y = attention %q, %k, %v, all rows, %mask {heads = ..., scale = ...}
//
// Between the products there may be, in this order and through reshapes: a multiplication or
// division by a constant, a soft cap, masks that are added or choose -inf. The scores are float32
// from the product to the softmax, so that only the probabilities are rounded: `attention` may sum
// in an order of its own and rounds the weights instead. With `relaxed`, roundings of the scores to
// 16 bits are left out too. No other op may read a value between the products.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// Attention that stays composed, since its scores are rounded: the last products, whose scores
/// `relaxed` would keep in float32.
std::vector<ValueId> rounded_attentions(const Graph& graph);

/// True if something changed.
bool recognize_attention(Module& module, bool relaxed);

}  // namespace sinter
