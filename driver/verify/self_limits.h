// How much work `verify --self` and `--invariant` do where nobody says how much.
#pragma once

#include "plan/program.h"

namespace sinter {

/// How much work is worth waiting for, as multiplications with weights, of which a core of a CPU
/// does some 1e10 a second.
struct SelfLimits {
  double text_products = 2e11;     // of the text by one plan on the CPU; a GPU has no limit
  double precise_products = 2e11;  // in float64
  /// The products of all readings of the text of --invariant on the CPU, and its tokens. A core
  /// does some 3e8 multiplications a second in the order of tensor cores.
  double invariant_products = 3e9;
  int64_t invariant_tokens = 300;
  /// Bytes that the host has for float64; none: as many as are available then.
  std::optional<int64_t> memory;
};

/// Tokens whose products with all weights are at most `products`.
int64_t affordable_tokens(const Program& program, double products);

/// Why results of [tokens, width] are not evaluated in float64; empty: they are. Fewer tokens than
/// `least` are not worth it.
std::string why_not_precise(const Program& program, int64_t tokens, int64_t width, int64_t least,
                            const SelfLimits& limits);

}  // namespace sinter
