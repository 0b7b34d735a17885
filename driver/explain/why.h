// The answer to "why do these two values (not) share a kernel?" for people and programs.
#pragma once

#include "driver/explain/ledger.h"

namespace sinter {

/// The answer of one entry.
struct Why {
  std::string entry;
  /// The decision about the values as asked. If they are fused, `merge`, `with` and `saved_bytes`
  /// describe the fusion that brought the two together.
  LedgerDecision decision;
  size_t fusions = 0;               // of the entry
  std::string kernel_a, kernel_b;   // that compute them; empty: none does
  uint32_t step_a = 0, step_b = 0;  // their places in the entry's order; of computed values
  std::vector<std::string> notes;   // "l0.q is a part of l0.qkv"
};

/// An answer for each entry that has both values, or of the entry `only`. Names may begin with the
/// % of the text form. A name that no entry has is a usage error with the nearest names; so are two
/// names that no entry has both.
Result<std::vector<Why>> why(const Compiled& compiled, const std::string& a, const std::string& b,
                             std::string_view only = {});
/// The same of one entry, by its index.
Result<Why> why(const Compiled& compiled, size_t entry, const std::string& a, const std::string& b);

/// {"answers": [..]}, an object for each entry: same_kernel, reason, text, detail, path, change,
/// kernels, steps, notes.
std::string why_json(const std::vector<Why>& answers);
std::string why_text(const std::vector<Why>& answers);

}  // namespace sinter
