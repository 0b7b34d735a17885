// Heads of keys and values that are repeated before an attention are read once:
//
//   %more = broadcast of keys [B, R, 8, 1, 64] to [B, R, 8, 4, 64]      %rows = reshape %more
//   %y = attention %q, %rows, ... {heads = 32, kv_heads = 32}
//   =>
//   %y = attention %q, %keys, ... {heads = 32, kv_heads = 8}
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool shared_heads(Module& module);

}  // namespace sinter
