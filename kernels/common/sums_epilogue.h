// The epilogue of a product whose results may need sums of several rows of the matrix: the rows
// that a block has to compute together, and the text that computes results from their sums.
#pragma once

#include <string>
#include <vector>

#include "codegen/emission/emit_index.h"
#include "ir/colocation.h"

namespace sinter {

class SumsEpilogue {
 public:
  /// `results`: the group's outputs that are computed from the sums of `anchor`, a product whose
  /// result has the axes [tokens ..., rows ...]. The last `row_axes` axes number the rows of a
  /// matrix, or of several, row-major.
  static Result<SumsEpilogue> create(const Graph& group, ValueId anchor,
                                     llvm::ArrayRef<ValueId> results,
                                     llvm::ArrayRef<Symbol> symbols, uint32_t row_axes = 1);

  /// How the matrix's rows are dealt to blocks.
  const ColocatedRows& rows() const { return rows_; }

  /// The text reads of the product, as one more input, and computes at a time:
  enum class Access : uint8_t {
    sum,    // sums in float32, without the bias: element `i` of a section
    chunk,  // the product: 8 elements from `i` on, which is a multiple of 8, as all sections are
  };
  /// Statements for the token `row`; `early` needs no sums.
  struct Section {
    int64_t first, width;
    std::string early, late;
  };
  struct Text {
    std::string globals;  // definitions before the function
    std::vector<Section> sections;
  };
  /// Inputs are named x0, x1, ..., results y0, y1, ...
  Result<Text> emit(llvm::ArrayRef<SymbolId> parameters, Access access) const;

  /// When `matrix_row` is the section's; empty: always.
  std::string condition(const Section& section) const;
  /// Statements that compute all elements of `row` whose thread has the sum of `matrix_row`.
  std::string of_matrix_row(llvm::ArrayRef<Section> sections) const;

  int64_t matrix_rows() const {
    return volume(DimsRef(group_[anchor_].type.dims).drop_front(token_axes_)).constant();
  }
  /// The most tokens of a call.
  int64_t tokens() const {
    return volume(DimsRef(group_[anchor_].type.dims).take_front(token_axes_)).upper_bound(symbols_);
  }
  size_t inputs() const { return group_.inputs.size(); }

 private:
  SumsEpilogue(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol> symbols,
               uint32_t row_axes)
      : group_(group),
        anchor_(anchor),
        symbols_(symbols),
        token_axes_(static_cast<uint32_t>(group[anchor].type.rank()) - row_axes) {}

  Status deal(llvm::ArrayRef<ValueId> results);
  Graph graph_of(llvm::ArrayRef<ValueId> outputs, Access access) const;
  /// Definitions before the function are appended to `globals`.
  Result<Section> section(const ColocatedRows::Section& rows, llvm::ArrayRef<SymbolId> parameters,
                          Access access, std::string& globals) const;

  const Graph& group_;
  ValueId anchor_;
  llvm::ArrayRef<Symbol> symbols_;
  uint32_t token_axes_;  // leading axes of the product
  ColocatedRows rows_;   // members: results of the group
};

/// The element of a section that the row `matrix_row` has, whose first row is `first`.
std::string element_of_section(int64_t first);

}  // namespace sinter
