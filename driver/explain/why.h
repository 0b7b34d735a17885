// The answer to "why do these two values (not) share a kernel?" for people and programs.
#pragma once

#include <memory>

#include "driver/explain/ledger.h"
#include "passes/fusion/fusion_costs.h"

namespace sinter {

/// Where a value is computed.
struct WhyPlace {
  std::string value;
  std::string kernel;          // empty: no kernel computes it
  std::optional<size_t> step;  // its place in the entry's order
};

/// The answer of one entry.
struct Why {
  std::string entry;
  /// The decision about the values as asked. If they are fused, `merge`, `with` and `saved_bytes`
  /// describe the fusion that brought the two together. Refused: the path leads through everything
  /// that stands between them, whatever the reason.
  LedgerDecision decision;
  size_t fusions = 0;  // of the entry
  WhyPlace a, b;
  /// Refused: where the values of the decision's path are computed.
  std::vector<WhyPlace> path;
  /// Refused, with others on the path: the first two neighbours on it that do not share a kernel.
  std::optional<LedgerDecision> first_refusal;
  std::vector<std::string> notes;  // "l0.q is a way of reading l0.qkv"
};

/// Answers about one compilation, with what they have in common found once.
class WhyAnswers {
 public:
  /// Keeps a reference to `compiled`.
  explicit WhyAnswers(const Compiled& compiled);
  ~WhyAnswers();

  /// The answer of an entry about two values of its graph, without notes. `finds_path`: of refused
  /// values whose verdict has no path one is looked for, which takes as long as the graph.
  Why of(size_t entry, ValueId a, ValueId b, bool finds_path = true) const;
  /// The fusions of an entry, in the order in which they were made.
  const std::vector<GroupMerge>& merges(size_t entry) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// An answer for each entry that has both values, or of the entry `only`. Names: of values or
/// modules (driver/compile/value_names.h). A name that no entry has is a usage error with the
/// nearest names; so are two names that no entry has both.
Result<std::vector<Why>> why(const Compiled& compiled, const std::string& a, const std::string& b,
                             std::string_view only = {});
/// The same of one entry, by its index.
Result<Why> why(const Compiled& compiled, size_t entry, const std::string& a, const std::string& b);

/// {"answers": [..]}, an object for each entry: same_kernel, reason, text, detail, path, change,
/// kernels, steps, path_kernels, path_steps, first_refusal, notes.
std::string why_json(const std::vector<Why>& answers);
std::string why_text(const std::vector<Why>& answers);

}  // namespace sinter
