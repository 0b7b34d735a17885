// Lengths for which one decision about a matrix product is made.
#pragma once

#include <cstdint>

namespace sinter {

/// The lengths first .. last.
struct LengthClass {
  int64_t first = 0, last = 0;
  friend bool operator==(const LengthClass&, const LengthClass&) = default;
};

/// The class of a length. Each length up to 64 is a class of its own: few rows are where the best
/// algorithm changes from one length to the next, and decode steps have so many. Beyond, each
/// (2^k, 2^(k+1)] is cut into four equal parts:
///
///   65..80  81..96  97..112  113..128  129..160  ..  1793..2048  2049..2560  ..
///
/// So the longest length of a class, at which it is decided, is less than 1.25 times any other, the
/// bounds are multiples of 16, the rows that tensor cores take at once, and a text of any length up
/// to 2^17 meets one of 44 classes beyond 64.
/// A length beyond 2^40, which no value's bytes allow, is a class of its own.
LengthClass length_class(int64_t length);

}  // namespace sinter
