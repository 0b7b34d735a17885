// Attention that no kernel family takes (choose_kernels) becomes two batched products and one row
// kernel between them:
//
//   %attn = attention %q, %keys, %values, %first, %slot {heads = 8, kv_heads = 2, scale = s}
//   =>
//   %attn.scores = einsum %q, %keys     "nkgd,tkd->kgnt" : f32
//   %attn.probs  = attention_softmax %attn.scores, %first, %slot
//   %attn        = einsum %attn.probs, %values "kgnt,tkd->nkgd"
//
// An attention stays whose scores would be no valid value: more than 8 axes, or more than 2^48
// bytes where the symbols are largest.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool expand_attention(Module& module);

}  // namespace sinter
