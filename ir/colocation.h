// Which rows of a product's matrix one block must compute together, so that the epilogue needs no
// sums p but the block's own:
//
//   silu(p[j]) * p[F + j]                            rows j and F + j
//   rope of heads of 80 elements, of which 20 turn:
//   p[80h + i] cos - p[80h + 10 + i] sin             rows 80h + i and 80h + 10 + i, i < 10
//   w[0] p[0, j] + w[1] p[1, j]                      rows (0, j) and (1, j)
//
// Rows are numbered row-major over the last axes of the product, one or several of them.
// A class is `units` rows at distance `stride`, all in one block; a block has many classes. Class c
// has the rows  c / stride * stride * units + c % stride + u * stride,  its units u < units
// (integer division).
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <variant>

#include "ir/op_facts.h"

namespace sinter {

struct ColocatedRows {
  static constexpr int64_t kMaxUnits = 8;  // their sums stand in shared memory together
  int64_t stride = 1, units = 1;
  /// Ops of the epilogue with `width` elements a token: element j (row-major) is computed by the
  /// thread that has the sum of row first + j.
  struct Section {
    int64_t first, width;
    llvm::SmallVector<ValueId, 4> members;  // ascending
  };
  llvm::SmallVector<Section, 3> sections;  // sorted by first row, then by width

  /// A class has one row of each of `count` matrices of `rows` rows, which follow one another.
  bool joins_matrices(int64_t count, int64_t rows) const {
    return units == count && (units == 1 || stride == rows);
  }
};

/// There are no such classes: `reader` would read a sum of `root` that another block has.
struct NotColocated {
  ValueId reader, root;
};

/// The classes of rows with which the epilogue `members` (ascending) of `anchor` reads only sums of
/// its own block. The last `row_axes` axes of the product count rows, the axes before them tokens;
/// the dims of each member must begin with the tokens' dims.
std::variant<ColocatedRows, NotColocated> colocated_rows(
    const Graph& graph, ValueId anchor, llvm::ArrayRef<ValueId> members,
    llvm::function_ref<const OpFacts&(ValueId)> facts, uint32_t row_axes = 1);
/// The same for a graph whose input `sums` are the sums. Only its outputs are checked, each
/// together with all ops between the sums and it. Members and readers are outputs of the graph.
std::variant<ColocatedRows, NotColocated> colocated_rows(const Graph& results, ValueId sums,
                                                         llvm::ArrayRef<Symbol> symbols,
                                                         uint32_t row_axes = 1);

}  // namespace sinter
