// The epilogue of a gemv: the rows of the matrix that it needs in one block, and its text.
#pragma once

#include <string>
#include <vector>

#include "codegen/emission/emit_index.h"
#include "kernels/gemv/colocation.h"

namespace sinter {

class GemvEpilogue {
 public:
  /// `results`: the group's outputs that are computed from the gemv's sums.
  static Result<GemvEpilogue> create(const Graph& group, ValueId anchor,
                                     llvm::ArrayRef<ValueId> results,
                                     llvm::ArrayRef<Symbol> symbols);

  /// How the matrix's rows are dealt to blocks.
  const ColocatedRows& rows() const { return rows_; }

  /// The kernel's form.
  struct Form {
    int64_t blocks, threads;
    bool loads_ahead;  // what needs no sums may be loaded before the product is computed
    std::string wait;  // statements between the product and all that follows it
  };
  struct Text {
    std::string globals;  // definitions before the function
    /// Calls product.run(). Inputs are named x0, x1, ..., results y0, y1, ...
    std::string body;
  };
  Result<Text> emit(llvm::ArrayRef<SymbolId> parameters, const Form& form) const;

 private:
  GemvEpilogue(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol> symbols)
      : group_(group), anchor_(anchor), symbols_(symbols) {}

  /// The text of a section: `early` needs no sums. In both the element of the section is `i`.
  struct Section {
    int64_t first, width;
    std::string early, late;
  };

  Status deal(llvm::ArrayRef<ValueId> results);
  Graph graph_of(llvm::ArrayRef<ValueId> outputs) const;
  /// Definitions before the function are appended to `globals`.
  Result<Section> section(const ColocatedRows::Section& rows, llvm::ArrayRef<SymbolId> parameters,
                          std::string& globals) const;
  std::string condition(const Section& section) const;
  std::string in_loop(llvm::ArrayRef<Section> sections, const Form& form) const;
  std::string loaded_ahead(const Section& section, const Form& form) const;
  std::string coordinates() const;
  int64_t tokens() const;
  int64_t matrix_rows() const { return group_[anchor_].type.dims[1].constant(); }

  const Graph& group_;
  ValueId anchor_;
  llvm::ArrayRef<Symbol> symbols_;
  ColocatedRows rows_;  // members: results of the group
};

}  // namespace sinter
