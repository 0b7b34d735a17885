// Answers of the fusion engine about a compiled entry under other conditions: other numerics,
// smaller sizes, a norm at another place.
#pragma once

#include "driver/compile/compile.h"
#include "driver/explain/merge_tree.h"

namespace sinter {

/// The answers for one entry. The engine runs when a question is first asked.
class OtherFusions {
 public:
  /// Keeps a reference to `compiled`; `entry` was fused.
  OtherFusions(const Compiled& compiled, size_t entry);

  /// Fast numerics, and the merges of that fusion.
  struct Fast {
    Fusion fusion;
    std::vector<GroupMerge> merges;
    MergeTree tree;
  };
  const Fast& fast();

  /// A symbol with a smaller upper bound.
  struct Bound {
    size_t symbol = 0;
    int64_t high = 0;
  };
  /// The largest bound of a symbol, of those that halving leads to, at which the two share a
  /// kernel. Of a large entry none is tried: each takes as long as the first fusion.
  std::optional<Bound> smaller_sizes(ValueId a, ValueId b);

  /// norm(x) and x + f(norm(x)): a norm before a branch (pre-LN), and the residual add behind it.
  bool is_pre_norm(ValueId norm, ValueId add) const;
  /// Would the add's kernel hold a norm behind the add, too: norm(x + f(x))?
  bool shares_with_norm_behind(ValueId norm, ValueId add) const;

 private:
  Fusion fuse_again(const Graph& graph, llvm::ArrayRef<Symbol> symbols, Numerics numerics) const;

  const Compiled& compiled_;
  std::vector<Symbol> symbols_;  // narrowed to the entry's range
  std::vector<int64_t> sizes_;
  const Graph& graph_;
  const Fusion& fusion_;
  std::optional<Fast> fast_;
  std::optional<std::vector<std::pair<Bound, Fusion>>> smaller_;
};

/// True if one kernel computes both.
bool together(const Fusion& fusion, ValueId a, ValueId b);

}  // namespace sinter
