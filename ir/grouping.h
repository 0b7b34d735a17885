// Which ops share a kernel: what the fusion engine decides and code generation follows.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// Ops computed by one kernel or one library call. Views, generators' readers and leaves belong to
/// no group: they are part of the reads.
struct Group {
  llvm::SmallVector<ValueId, 4> members;  // ascending
  /// Leading axes that all members share and that rows are made of; trailing axes are a row's
  /// elements. 0 for a contraction.
  uint32_t prefix_rank = 0;
  /// Groups of other rows side by side in one kernel, each in blocks of its own; none depends on
  /// another, and `members` holds theirs all. Empty: the group is one itself.
  std::vector<Group> parts;
};

/// A partition of a graph's computing ops, in an order in which they can run.
struct Grouping {
  std::vector<Group> groups;
  std::vector<uint32_t> group_of;  // by value; UINT32_MAX: in none
};

/// True for ops that run: not leaves, views or generators.
inline bool computes(const Op& op) {
  const OpClass c = op_class(op);
  return c != OpClass::leaf && c != OpClass::view && c != OpClass::generator;
}

/// Every output of a group has elements, whatever the symbols' values: its kernel is launched.
bool is_never_empty(const Graph& group, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
