// What stands behind a gemv: the rows of the matrix that it needs in one block, and its text.
#pragma once

#include <string>
#include <vector>

#include "codegen/emission/emit_index.h"
#include "kernels/common/colocation.h"

namespace sinter {

class GemvEpilogue {
 public:
  /// `results`: those of the group's outputs that the gemv's sums, or ops behind it, make.
  static Result<GemvEpilogue> create(const Graph& group, ValueId anchor,
                                     llvm::ArrayRef<ValueId> results,
                                     llvm::ArrayRef<Symbol> symbols);

  /// Rows of the matrix that belong together.
  const ColocatedRows& rows() const { return rows_; }

  /// The kernel's form.
  struct Form {
    int64_t blocks, threads;
    bool loads_ahead;  // what needs no sums may be loaded ahead of the product
    std::string wait;  // to be done between the product and all that follows it
  };
  struct Text {
    std::string globals;  // definitions before the function
    /// From `product.run()` on, which it calls. The kernel's results are named out0, out1, ..., its
    /// inputs x0, x1, ...
    std::string body;
  };
  Result<Text> emit(llvm::ArrayRef<SymbolId> parameters, const Form& form) const;

 private:
  GemvEpilogue(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol> symbols)
      : group_(group), anchor_(anchor), symbols_(symbols) {}

  /// A section as code: `early` needs no sums. In both the element of the section is `i`.
  struct Section {
    int64_t first, width;
    std::string results, early, late, globals;
  };

  Status deal(llvm::ArrayRef<ValueId> results);
  Graph graph_of(llvm::ArrayRef<ValueId> outputs) const;
  Result<Section> section(const ColocatedRows::Section& rows,
                          llvm::ArrayRef<SymbolId> parameters) const;
  std::string condition(const Section& section) const;
  std::string visit(const Section& section, std::string_view name) const;
  int64_t tokens() const;
  int64_t matrix_rows() const { return group_[anchor_].type.dims[1].constant(); }

  const Graph& group_;
  ValueId anchor_;
  llvm::ArrayRef<Symbol> symbols_;
  ColocatedRows rows_;  // members: results of the group
};

}  // namespace sinter
