// Where a read lands: for every axis of a value, an expression in the loop variables of the reader.
#pragma once

#include <memory>

#include "ir/graph.h"
#include "ir/sym_expr.h"

namespace sinter {

/// A sum of terms coefficient × atom, plus a constant. An atom is a loop variable or, where a
/// reshape does not fit the loop's axes, a quotient or remainder of another index expression.
class IndexExpr {
 public:
  struct Atom {
    enum class Kind : uint8_t { variable, quotient, remainder } kind = Kind::variable;
    uint32_t variable = 0;                     // kind variable: its number
    std::shared_ptr<const IndexExpr> operand;  // otherwise
    SymExpr divisor;
    friend bool operator==(const Atom& a, const Atom& b);
  };
  struct Term {
    Atom atom;
    SymExpr coefficient;
    friend bool operator==(const Term&, const Term&) = default;
  };

  IndexExpr(SymExpr constant = 0) : constant_(std::move(constant)) {}
  static IndexExpr variable(uint32_t number);
  static IndexExpr from_atom(Atom atom);

  llvm::ArrayRef<Term> terms() const { return terms_; }
  const SymExpr& constant() const { return constant_; }
  bool is_variable(uint32_t number) const;
  /// No quotients or remainders.
  bool is_affine() const;
  /// Coefficient of a loop variable (0 if absent).
  SymExpr coefficient(uint32_t variable) const;

  IndexExpr& operator+=(const IndexExpr& other);
  friend IndexExpr operator+(IndexExpr a, const IndexExpr& b) { return a += b; }
  friend IndexExpr operator*(const IndexExpr& a, const SymExpr& factor);
  friend bool operator==(const IndexExpr&, const IndexExpr&) = default;

  /// floor(e / divisor) and e mod divisor, simplified where the extents of the loop variables
  /// (variable i runs over 0 .. extents[i]-1) prove it.
  static IndexExpr quotient(const IndexExpr& e, const SymExpr& divisor, DimsRef extents);
  static IndexExpr remainder(const IndexExpr& e, const SymExpr& divisor, DimsRef extents);

  /// The largest value over the loop variables' ranges; nullopt where it is not known or a
  /// coefficient may be negative.
  std::optional<SymExpr> largest(DimsRef extents) const;

 private:
  void add_term(const Term& term);
  void recombine();

  llvm::SmallVector<Term, 1> terms_;  // canonical order, no zero coefficients
  SymExpr constant_;
};

/// One expression per axis of a value. Without room of its own for any: maps of all reads of a
/// graph are kept, and an expression is large.
using IndexMap = llvm::SmallVector<IndexExpr, 0>;

/// Variables 0 .. rank-1, one per axis.
IndexMap identity_map(size_t rank);

/// The coordinates in `view`'s operand of the element of `view` at `coords`. `extents`: of the loop
/// variables in `coords`.
IndexMap through_view(const Graph& graph, ValueId view, const IndexMap& coords, DimsRef extents);

/// The value and coordinates that a read of `id` at `coords` reaches through all views.
struct Access {
  ValueId root;
  IndexMap coords;
};
Access resolve_access(const Graph& graph, ValueId id, IndexMap coords, DimsRef extents);

/// Coordinates of operand shape `from` when a result of shape `to` (NumPy broadcast of it) is read
/// at `coords`.
IndexMap broadcast_coords(DimsRef from, DimsRef to, const IndexMap& coords);

/// Row-major position of `coords` in a value of these dims, in elements.
IndexExpr linearize(DimsRef dims, const IndexMap& coords);
/// Row-major coordinates of position `offset`.
IndexMap delinearize(DimsRef dims, const IndexExpr& offset, DimsRef extents);

}  // namespace sinter
