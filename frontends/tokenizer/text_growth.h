// How long a text may become. A tokenizer's rules come from a file that nobody checked, and rules
// that follow one another multiply.
#pragma once

#include <algorithm>
#include <cstddef>

#include "ir/error.h"

namespace sinter {

/// The most bytes that a file's rules may make of a text of `bytes`: 64 times as many, or 1 MiB if
/// that is more. The longest normal form (NFKC, NFKD) has 11 times the bytes of its text.
inline size_t longest_rewritten(size_t bytes) { return std::max(size_t{1} << 20, 64 * bytes); }

/// Refuses `made` bytes of text that were made of `given` bytes.
inline Status check_growth(size_t given, size_t made) {
  if (made <= longest_rewritten(given)) return {};
  return fail(fmt::format("the tokenizer's rules make more than {} bytes of a text of {}",
                          longest_rewritten(given), given),
              {}, "download the tokenizer again");
}

}  // namespace sinter
