// Integers of a graph as sums of positions: what an element of a value is, said by its place.
//
//   %k = iota {axis = 1} : i32[1, 64]         the element at (q, k):  k
//   %d = sub %q, %k                                                   q - k
//
// Positions are the loop variables of a reader. What is no such sum is a node of its own: an
// element in memory, or a function of terms (a quotient, a maximum).
#pragma once

#include <llvm/ADT/DenseMap.h>

#include <vector>

#include "ir/index_map.h"

namespace sinter {

/// Terms, and the elements of i64 that are compared with them, stay below it, so that no sum of a
/// few overflows.
inline constexpr int64_t kTermLimit = int64_t{1} << 40;
/// The absolute value of x is above a limit.
inline bool exceeds(int64_t x, int64_t limit) { return x > limit || x < -limit; }

/// An index expression whose coefficients are numbers and whose variables are nodes: the reader's
/// loop variables, by their numbers, and elements and functions behind them.
using Term = IndexExpr;

inline Term operator-(const Term& a, const Term& b) { return a + b * -1; }
inline bool is_constant(const Term& term) { return term.terms().empty(); }
/// The number that is added to the nodes.
inline int64_t constant_of(const Term& term) { return term.constant().constant(); }

/// The nodes of a term, each with its factor, which is not 0.
struct TermPart {
  uint32_t node;
  int64_t factor;
};
inline llvm::SmallVector<TermPart, 4> parts_of(const Term& term) {
  llvm::SmallVector<TermPart, 4> parts;
  for (const IndexExpr::Term& part : term.terms())
    parts.push_back({part.atom.variable, part.coefficient.constant()});
  return parts;
}

/// A part of a term.
struct TermNode {
  enum class Kind : uint8_t {
    position,  // the loop variable of that number
    element,   // of `root`, an integer or a truth value, at `coords`
    function,  // the op `function` of `operands`: div_floor, mod_floor, abs, maximum, minimum
    truth      // i1, the op `function` of `operands`: less_equal (operands[0] <= 0), logical_and,
               // logical_or, logical_not
  };
  Kind kind = Kind::position;
  ValueId root = {};
  IndexMap coords = {};
  OpKind function = OpKind::input;
  std::vector<Term> operands = {};  // of a truth value: a node

  friend bool operator==(const TermNode&, const TermNode&) = default;
};

/// The terms of one reader of a graph, whose loop variables have `extents`.
class PositionTerms {
 public:
  PositionTerms(const Graph& graph, DimsRef extents, llvm::ArrayRef<Symbol> symbols)
      : graph_(graph), extents_(extents), symbols_(symbols), nodes_(extents.size()) {}

  /// The integer, or the truth value as 0 or 1, that `id` has at `coords`. Sums that might wrap
  /// around are elements of their own.
  Term read(ValueId id, const IndexMap& coords);
  /// The term that an elementwise op reads from an operand for its element `coords`.
  Term read_operand(const Op& op, size_t operand, const IndexMap& coords);
  Term position(uint32_t variable);
  Term element(ValueId root, IndexMap coords);
  Term function(OpKind kind, std::vector<Term> operands);
  /// The maximum or minimum of one term or more.
  Term joined(OpKind kind, llvm::ArrayRef<Term> all);
  /// i1: x <= 0. A constant 0 or 1 where that is known for all positions.
  Term at_most_zero(const Term& x);
  Term logical(OpKind kind, std::vector<Term> operands);
  /// The truth value a where the condition holds, else b.
  Term chosen(const Term& condition, const Term& a, const Term& b);

  /// The least and the largest value over all positions, where both are known.
  struct Bounds {
    int64_t least, largest;
  };
  std::optional<Bounds> bounds(const Term& term) const;
  /// x <= 0 for all positions and all values of the symbols.
  bool is_at_most_zero(const Term& x) const;
  /// The loop variable stands in the term, or in an index.
  bool depends_on(const IndexExpr& term, uint32_t variable) const;

  const TermNode& operator[](uint32_t node) const { return nodes_[node]; }
  /// The node that the term is; null: it is a number or a sum.
  const TermNode* node_of(const Term& term) const;
  const Graph& graph() const { return graph_; }
  DimsRef extents() const { return extents_; }

 private:
  Term node(TermNode node);
  std::optional<Term> index(const IndexExpr& expression);
  Term read_root(const Op& op, ValueId root, const IndexMap& coords);
  std::optional<Term> read_op(const Op& op, const IndexMap& coords);
  std::optional<Term> read_comparison(const Op& op, const IndexMap& coords);
  std::optional<Term> read_gather(const Op& op, const IndexMap& coords);
  std::optional<Term> everywhere(ValueId id) const;
  std::optional<Term> read_concat(const Op& op, const IndexMap& coords);
  std::optional<Term> read_cast(const Op& op, const IndexMap& coords);
  std::optional<Bounds> bounds_of(uint32_t node) const;
  bool fits(const Term& term, DType dtype) const;

  const Graph& graph_;
  DimsRef extents_;
  llvm::ArrayRef<Symbol> symbols_;
  std::vector<TermNode> nodes_;
  struct Known {
    IndexMap coords;
    Term term;
  };
  llvm::DenseMap<uint32_t, llvm::SmallVector<Known, 1>> known_;  // by root
  int depth_ = 0;                                                // of reads within reads
};

}  // namespace sinter
