// Attention's algorithm, chosen by the number of tokens.
//
//   %attn = attention %q, %keys, %values, %first, %slot {heads = 8, kv_heads = 2, scale = s}
//
// Many tokens: two batched products and one row kernel between them.
//   %attn.scores = einsum %q, %keys     "nkgd,tkd->kgnt" : f32
//   %attn.probs  = attention_softmax %attn.scores, %first, %slot
//   %attn        = einsum %attn.probs, %values "kgnt,tkd->nkgd"
//
// At most kFewTokens: one kernel whose shapes do not depend on the number of keys, so that a step
// recorded once serves all lengths.
//   %attn = attention_few %q, %keys, %values, %first, %slot {splits = 8}
#pragma once

#include "ir/graph.h"

namespace sinter {

inline constexpr int64_t kFewTokens = 8;

/// True if something changed.
bool expand_attention(Module& module);

}  // namespace sinter
