// A matrix product whose result is known to the last bit, whatever the order of its sums: an
// implementation that leaves out a part of k, or takes it twice, gives another one.
#pragma once

#include <span>

#include "runtime/cuda/gemm_problem.h"

namespace sinter {

/// Every element of A is `a`, of B 1, of bias and residual `added`. Every partial sum is exact in
/// float32.
struct KnownProduct {
  float a = 1;
  float added = 0;
  float result = 0;  // of every element, before it is rounded to C's type
};

/// The operands for `problem`, whose elements have float types; nothing where k is so large that
/// float32 cannot count it (beyond 2^24).
std::optional<KnownProduct> known_product(const GemmProblem& problem);

/// `c`: the elements from C's first to its last, which were bytes of kUnwritten before the product
/// was computed. Every element of C must be the result in C's type, and every element between them
/// untouched. The error shows the first element that differs and how many do.
Status check_known_product(const GemmProblem& problem, const KnownProduct& known,
                           std::span<const std::byte> c);

/// NaN in every float type.
inline constexpr std::byte kUnwritten{0xff};

}  // namespace sinter
