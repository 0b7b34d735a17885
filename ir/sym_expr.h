// Polynomials over symbols with integer coefficients: sizes, strides and arena offsets.
#pragma once

#include <compare>

#include "ir/types.h"

namespace sinter {

/// A sum of terms coefficient × product of symbols. Canonical: terms sorted by their symbols, no
/// zero coefficient, so that equality is structural. Arithmetic is checked: an overflow of int64
/// makes the result `overflowed()`, which stays so.
class SymExpr {
 public:
  using Monomial = llvm::SmallVector<SymbolId, 2>;  // sorted, with repetition
  struct Term {
    Monomial symbols;
    int64_t coefficient;
    friend bool operator==(const Term&, const Term&) = default;
  };

  SymExpr(int64_t constant = 0);
  SymExpr(Dim dim);

  bool overflowed() const { return overflowed_; }
  bool is_constant() const;
  /// The value of an expression without symbols.
  int64_t constant() const;
  bool is(int64_t value) const { return is_constant() && constant() == value; }
  llvm::ArrayRef<Term> terms() const { return terms_; }

  /// The value when symbol i has values[i]; nullopt on overflow.
  std::optional<int64_t> evaluate(llvm::ArrayRef<int64_t> values) const;
  /// The value with every symbol at its upper bound, saturating at int64 max.
  int64_t upper_bound(llvm::ArrayRef<Symbol> symbols) const;
  /// Largest constant known to divide every value of the expression (0 for the constant 0).
  int64_t divisor(llvm::ArrayRef<Symbol> symbols) const;
  /// True if every coefficient of `this` is >= the same coefficient of `other`; then `this` >=
  /// `other` for all symbol values.
  bool covers(const SymExpr& other) const;
  /// this / other when that is exact for all symbol values and `other` is one term.
  std::optional<SymExpr> divide_exactly(const SymExpr& other) const;

  SymExpr& operator+=(const SymExpr& other);
  SymExpr& operator-=(const SymExpr& other);
  friend SymExpr operator+(SymExpr a, const SymExpr& b) { return a += b; }
  friend SymExpr operator-(SymExpr a, const SymExpr& b) { return a -= b; }
  friend SymExpr operator*(const SymExpr& a, const SymExpr& b);
  friend bool operator==(const SymExpr&, const SymExpr&) = default;

 private:
  void add_term(const Monomial& symbols, int64_t coefficient);

  llvm::SmallVector<Term, 1> terms_;  // most have one; a module has many expressions
  bool overflowed_ = false;
};

/// Product of the extents (1 for rank 0).
SymExpr volume(DimsRef dims);
/// Bytes that a value of this type occupies. Of a type that packs elements into bytes the last
/// extent is a constant that divides into whole bytes: a row begins at an address.
SymExpr storage_bytes(const TensorType& type);
/// Row-major strides in elements; same length as dims.
llvm::SmallVector<SymExpr, 4> row_major_strides(DimsRef dims);
/// "4096*N + 32", symbols by name.
std::string to_string(const SymExpr& expr, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
