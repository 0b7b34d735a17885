// Which rows of a product's matrix one block must compute together, so that the epilogue needs no
// sums p but the block's own:
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
  /// Ops of the epilogue with `width` elements a token: element j (row-major) is computed by the
  /// thread that has the sum of row first + j.
  struct Section {
    int64_t first, width;
    llvm::SmallVector<ValueId, 4> members;  // ascending
  };
  llvm::SmallVector<Section, 3> sections;  // by first row and width
};

/// Rows cannot be dealt so: `reader` would read a sum of `root` that another block has.
struct NotColocated {
  ValueId reader, root;
};

/// How rows are dealt so that the epilogue `members` (ascending) of `anchor` reads sums of its own
/// block alone. Every member's dims begin with the product's tokens.
std::variant<ColocatedRows, NotColocated> colocated_rows(
    const Graph& graph, ValueId anchor, llvm::ArrayRef<ValueId> members,
    llvm::function_ref<const OpFacts&(ValueId)> facts);
/// The same for the outputs of a graph, each computed through all that stands between it and the
/// sums, which are the graph's input `sums`. Members and readers are the graph's outputs.
std::variant<ColocatedRows, NotColocated> colocated_rows(const Graph& results, ValueId sums,
                                                         llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
