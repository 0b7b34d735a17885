// Which kernel family took an op that several can compute, and why.
#pragma once

#include <string>
#include <vector>

#include "driver/compile/compile.h"

namespace sinter {

/// Ops that were compiled in the same way for the same reason.
struct LedgerChoice {
  std::string what;                 // "attention"
  std::string by;                   // "tiled_attention"; "composed": several ops
  std::string why;                  // "more than 8 tokens of f16"
  std::vector<std::string> values;  // that the ops make
};

/// The choices in an entry after the passes, in the order of its ops.
std::vector<LedgerChoice> choices_of(const Graph& graph);

/// "attention: 32 by tiled_attention (more than 8 tokens of f16)"
std::string choice_text(const LedgerChoice& choice);

}  // namespace sinter
