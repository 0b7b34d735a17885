// Loop variables of a kernel, and index expressions as code.
//
// Variables are numbered for the whole kernel: the axes of the rows, then the axes of each stage,
// then what emission adds: rows chosen by a loaded value, and positions inside a part of a concat.
// A stage is walked in chunks of 8 elements: its flat index is `i` at the chunk, `i + e` at an
// element, and every axis has a form for both.
#pragma once

#include <map>
#include <string>

#include "codegen/emission/emit_group.h"
#include "ir/index_map.h"

namespace sinter {

/// Neighbouring elements that a thread loads or stores at once.
inline constexpr int64_t kChunkElements = 8;

/// How often an expression changes: with the row, the chunk, or the element.
enum class Level : uint8_t { row, chunk, element };

/// A size as code, symbols by their parameters' names: "n0 * 4096". `nested`: sums and products in
/// parentheses.
std::string size_code(const SymExpr& e, llvm::ArrayRef<SymbolId> parameters, bool nested = true);

class LoopSpace {
 public:
  LoopSpace(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
            llvm::ArrayRef<SymbolId> parameters);

  /// The stage whose loop is being written; its axes are the only ones in use.
  void enter(uint32_t stage) { stage_ = stage; }

  /// A variable whose value is the int `code`, loaded at `level`.
  uint32_t add_loaded(std::string code, Dim extent, Level level);
  /// A variable that stands for `value`, known to be below `extent`.
  uint32_t add_alias(IndexExpr value, Dim extent);

  /// Extents of all variables, for index_map.h.
  DimsRef extents() const { return extents_; }
  /// The number of the stage's current element, where rows follow one another.
  IndexExpr flat() const;
  /// The coordinates, in a value of these dims, of the stage's current element.
  IndexMap identity(DimsRef dims) const;
  /// Aliases replaced by what they stand for, axes of one element by 0.
  IndexExpr lower(const IndexExpr& e) const;
  Level level(const IndexExpr& e) const;
  Level level(const IndexMap& coords) const;
  /// True if the expression grows by 1 from element to element of a chunk and is a multiple of
  /// `alignment` (a divisor of 8) at the first: a place where a whole chunk can be accessed.
  bool contiguous(const IndexExpr& e, int64_t alignment) const;

  /// True if the expression is affine in the axes of rows and stages alone.
  bool fixed(const IndexExpr& e) const;
  /// True if the expression depends on the row.
  bool of_row(const IndexExpr& e) const;

  /// The expression at the current element, or at the first of the chunk.
  std::string code(const IndexExpr& e, bool at_chunk = false);
  /// `nested`: sums and products in parentheses.
  std::string size_code(const SymExpr& e, bool nested = true) const;
  /// A text that is equal for equal expressions.
  std::string key(const IndexExpr& e) const;

  /// Declarations of the chunk's axes that `code` has used since the last call.
  std::string take_chunk_axes();
  /// Declarations of the row's axes that `code` has used.
  std::string row_axes() const;
  /// Whether what `code` has given depends on `row`.
  bool uses_row() const { return used_.contains(kRow); }
  /// The stage's flat index fits an int.
  bool has_int_index(const Stage& stage) const;
  /// int where the stage's flat index fits, else long long.
  const char* index_type(const Stage& stage) const {
    return has_int_index(stage) ? "int" : "long long";
  }
  bool divides_by_chunk(const SymExpr& e) const { return e.divisor(symbols_) % 8 == 0; }
  llvm::ArrayRef<Symbol> symbols() const { return symbols_; }

 private:
  struct Variable {
    Level level = Level::row;
    std::string element_code, chunk_code;
    std::string used;  // the axis to declare
    std::optional<IndexExpr> alias;
  };
  /// Axes whose row-major combination has a name: code is the name's.
  struct Run {
    uint32_t first, count;
    SymExpr size;
    std::string element_code, chunk_code, used;
  };
  struct StageLoop {
    uint32_t first = 0;              // variable of the outermost axis
    uint32_t block = 0;              // axes from here on are walked inside one chunk-aligned block
    llvm::SmallVector<Run, 2> runs;  // longest first
    std::vector<std::pair<std::string, std::string>> declarations;  // axis, declaration
  };

  static constexpr const char* kRow = "row";  // the number of the row in the kernel's text

  void add_rows(const GroupForm& form);
  void add_stage(const Stage& stage);
  void add(Dim extent, Variable variable);
  /// A factor of a sum's term; `is_wide`: it has 64 bits.
  struct Factor {
    std::string code;
    bool is_wide;
  };
  void append_term(std::string& text, const Factor& factor, const SymExpr& coefficient) const;
  std::string narrow(const std::string& name, const SymExpr& bound) const;
  Factor atom_code(const IndexExpr::Atom& atom, bool at_chunk);
  void use(const std::string& axis);
  bool is_row_axis(uint32_t variable) const { return variable < form_.prefix.size(); }

  const GroupForm& form_;
  llvm::ArrayRef<Symbol> symbols_;
  llvm::ArrayRef<SymbolId> parameters_;
  Dims extents_;
  uint32_t fixed_count_ = 0;  // variables that are axes
  std::vector<Variable> variables_;
  std::vector<StageLoop> loops_;
  llvm::SmallVector<Run, 1> row_runs_;
  std::vector<std::pair<std::string, std::string>> row_declarations_;
  std::map<std::string, bool> used_;
  uint32_t stage_ = 0;
};

}  // namespace sinter
