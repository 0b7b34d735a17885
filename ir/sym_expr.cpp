#include "ir/sym_expr.h"

#include <algorithm>
#include <numeric>

namespace sinter {
namespace {

std::strong_ordering compare(const SymExpr::Monomial& a, const SymExpr::Monomial& b) {
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

SymExpr::SymExpr(int64_t constant) { add_term({}, constant); }

SymExpr::SymExpr(Dim dim) {
  if (dim.is_constant())
    add_term({}, dim.constant());
  else
    add_term({dim.symbol()}, 1);
}

void SymExpr::add_term(const Monomial& symbols, int64_t coefficient) {
  if (coefficient == 0) return;
  auto at =
      std::lower_bound(terms_.begin(), terms_.end(), symbols,
                       [](const Term& t, const Monomial& m) { return compare(t.symbols, m) < 0; });
  if (at == terms_.end() || compare(at->symbols, symbols) != 0) {
    terms_.insert(at, Term{symbols, coefficient});
    return;
  }
  overflowed_ |= __builtin_add_overflow(at->coefficient, coefficient, &at->coefficient);
  if (at->coefficient == 0) terms_.erase(at);
}

bool SymExpr::is_constant() const {
  return terms_.empty() || (terms_.size() == 1 && terms_[0].symbols.empty());
}

int64_t SymExpr::constant() const {
  SINTER_CHECK(is_constant(), "symbolic size");
  return terms_.empty() ? 0 : terms_[0].coefficient;
}

std::optional<int64_t> SymExpr::evaluate(llvm::ArrayRef<int64_t> values) const {
  if (overflowed_) return std::nullopt;
  int64_t sum = 0;
  for (const Term& term : terms_) {
    int64_t product = term.coefficient;
    for (SymbolId symbol : term.symbols)
      if (__builtin_mul_overflow(product, values[symbol.index], &product)) return std::nullopt;
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

int64_t SymExpr::upper_bound(llvm::ArrayRef<Symbol> symbols) const {
  // Symbols are not negative, so a term with a negative coefficient is largest at the lower bound.
  if (overflowed_) return INT64_MAX;
  int64_t sum = 0;
  for (const Term& term : terms_) {
    int64_t product = term.coefficient;
    for (SymbolId s : term.symbols) {
      const Symbol& symbol = symbols[s.index];
      if (__builtin_mul_overflow(product, term.coefficient > 0 ? symbol.high : symbol.low,
                                 &product))
        return INT64_MAX;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return INT64_MAX;
  }
  return sum;
}

int64_t SymExpr::divisor(llvm::ArrayRef<Symbol> symbols) const {
  int64_t common = 0;
  for (const Term& term : terms_) {
    int64_t product = term.coefficient;
    for (SymbolId symbol : term.symbols)
      if (__builtin_mul_overflow(product, symbols[symbol.index].multiple, &product))
        product = term.coefficient;
    common = std::gcd(common, product);
  }
  return common;
}

bool SymExpr::covers(const SymExpr& other) const {
  SymExpr difference = *this;
  difference -= other;
  return !difference.overflowed_ &&
         llvm::all_of(difference.terms_, [](const Term& t) { return t.coefficient >= 0; });
}

std::optional<SymExpr> SymExpr::divide_exactly(const SymExpr& other) const {
  if (other.terms_.size() != 1 || overflowed_ || other.overflowed_) return std::nullopt;
  const Term& divisor = other.terms_[0];
  SymExpr result;
  for (const Term& term : terms_) {
    if (divisor.coefficient == 0 || term.coefficient % divisor.coefficient != 0)
      return std::nullopt;
    if (!std::includes(term.symbols.begin(), term.symbols.end(), divisor.symbols.begin(),
                       divisor.symbols.end()))
      return std::nullopt;
    Monomial rest;
    std::set_difference(term.symbols.begin(), term.symbols.end(), divisor.symbols.begin(),
                        divisor.symbols.end(), std::back_inserter(rest));
    result.add_term(rest, term.coefficient / divisor.coefficient);
  }
  return result;
}

SymExpr& SymExpr::operator+=(const SymExpr& other) {
  overflowed_ |= other.overflowed_;
  for (const Term& term : other.terms_) add_term(term.symbols, term.coefficient);
  return *this;
}

SymExpr& SymExpr::operator-=(const SymExpr& other) {
  overflowed_ |= other.overflowed_;
  for (const Term& term : other.terms_) {
    int64_t negated = 0;
    overflowed_ |= __builtin_sub_overflow(int64_t{0}, term.coefficient, &negated);
    add_term(term.symbols, negated);
  }
  return *this;
}

SymExpr operator*(const SymExpr& a, const SymExpr& b) {
  SymExpr result;
  result.overflowed_ = a.overflowed_ || b.overflowed_;
  for (const SymExpr::Term& x : a.terms_)
    for (const SymExpr::Term& y : b.terms_) {
      SymExpr::Monomial symbols;
      std::merge(x.symbols.begin(), x.symbols.end(), y.symbols.begin(), y.symbols.end(),
                 std::back_inserter(symbols));
      int64_t coefficient = 0;
      result.overflowed_ |= __builtin_mul_overflow(x.coefficient, y.coefficient, &coefficient);
      result.add_term(symbols, coefficient);
    }
  return result;
}

SymExpr volume(DimsRef dims) {
  SymExpr product = 1;
  for (Dim dim : dims) product = product * SymExpr(dim);
  return product;
}

SymExpr storage_bytes(const TensorType& type) {
  DimsRef rows = type.dims;
  SymExpr bytes;
  const bool packed = dtype_info(type.dtype).bits % 8 != 0;
  if (packed && !rows.empty()) {
    bytes = storage_bytes(type.dtype, rows.back().constant());
    rows = rows.drop_back();
  } else {
    bytes = whole_bytes(type.dtype);
  }
  return bytes * volume(rows);
}

llvm::SmallVector<SymExpr, 4> row_major_strides(DimsRef dims) {
  llvm::SmallVector<SymExpr, 4> strides(dims.size(), SymExpr(1));
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * SymExpr(dims[i]);
  return strides;
}

std::string to_string(const SymExpr& expr, llvm::ArrayRef<Symbol> symbols) {
  if (expr.overflowed()) return "overflow";
  if (expr.terms().empty()) return "0";
  std::string text;
  for (const SymExpr::Term& term : llvm::reverse(expr.terms())) {
    if (!text.empty())
      text += term.coefficient < 0 ? " - " : " + ";
    else if (term.coefficient < 0)
      text += "-";
    const uint64_t magnitude = term.coefficient < 0 ? 0 - static_cast<uint64_t>(term.coefficient)
                                                    : static_cast<uint64_t>(term.coefficient);
    std::string product;
    if (magnitude != 1 || term.symbols.empty()) product = fmt::format("{}", magnitude);
    for (SymbolId symbol : term.symbols)
      product += (product.empty() ? "" : "*") + symbols[symbol.index].name;
    text += product;
  }
  return text;
}

}  // namespace sinter
