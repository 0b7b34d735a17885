// Which rows of a gemv's matrix one block must have, so that what follows the product can
// be computed from the block's own sums p:
//
//   silu(p[j]) * p[F + j]                            rows j and F + j
//   rope: p[80h + i] cos - p[80h + 10 + i] sin       rows 80h + i and 80h + 10 + i, i < 10
//
// Rows are dealt in classes, a class to one block. With a stride and so many units, class c has the
// rows  c / stride * stride * units + c % stride + u * stride,  u < units.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <variant>

#include "ir/op_facts.h"

namespace sinter {

struct ColocatedRows {
  int64_t stride = 1, units = 1;
  /// Ops whose elements are computed beside sums: element j (of a token, row-major) beside that of
  /// row first + j.
  struct Section {
    int64_t first, width;
    llvm::SmallVector<ValueId, 4> members;  // ascending
  };
  llvm::SmallVector<Section, 3> sections;  // by first row and width
};

/// The op that no such deal serves, and the value that it would read in another block.
struct NotColocated {
  ValueId reader, root;
};

/// How rows are dealt so that the ops `members` (ascending), computed after `anchor`, read sums of
/// their own block. Every member's dims begin with the product's tokens.
std::variant<ColocatedRows, NotColocated> colocated_rows(
    const Graph& graph, ValueId anchor, llvm::ArrayRef<ValueId> members,
    llvm::function_ref<const OpFacts&(ValueId)> facts);
/// The same for the outputs of a graph, each computed through all that stands between it and the
/// sums, which are the graph's input `sums`. Members and readers are the graph's outputs.
std::variant<ColocatedRows, NotColocated> colocated_rows(const Graph& results, ValueId sums,
                                                         llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
