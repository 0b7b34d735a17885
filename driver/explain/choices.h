// Which kernel family took an op that several can compute, and why; what another choice would save.
#pragma once

#include <optional>
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

/// The predictions for an entry less those for it with `--attention relaxed`, at Compiled::sizes.
/// Below 0: relaxed attention would cost as much more.
struct RelaxedSavings {
  size_t places = 0;  // attentions that are composed since their scores are rounded
  double seconds = 0;
  double bytes = 0;
};
/// For each entry of a plan; nullopt: no attention of it is composed for that reason.
using EntrySavings = std::vector<std::optional<RelaxedSavings>>;

/// "would save 6.20 ms and 1.10 GB", "would save 6.20 ms and 1.10 GB in 2 places".
std::string savings_text(const RelaxedSavings& savings);

}  // namespace sinter
