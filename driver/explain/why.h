// The answer to "why do these two values (not) share a kernel?" for people and programs.
#pragma once

#include "driver/explain/ledger_report.h"

namespace sinter {

struct Why {
  LedgerDecision decision;          // of the values as asked
  std::string kernel_a, kernel_b;   // that compute them; empty: none does
  uint32_t step_a = 0, step_b = 0;  // their places in the entry's order; of computed values
  std::vector<std::string> notes;   // "l0.q is a part of l0.qkv"
};

/// `entry` is the index of the entry. A name that the entry lacks is a usage error with the nearest
/// names.
Result<Why> why(const Compiled& compiled, size_t entry, const std::string& a, const std::string& b);

/// One object: same_kernel, reason, text, detail, path, kernels, steps, notes.
std::string why_json(const Why& why, const std::string& entry);
std::string why_text(const Why& why);

}  // namespace sinter
