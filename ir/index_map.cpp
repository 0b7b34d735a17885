#include "ir/index_map.h"

namespace sinter {
namespace {

/// e = whole * divisor + rest, where `rest` holds what the divisor does not divide.
struct Split {
  IndexExpr whole, rest;
};

Split split(const IndexExpr& e, const SymExpr& divisor) {
  Split result;
  for (const IndexExpr::Term& term : e.terms()) {
    const IndexExpr atom = IndexExpr::from_atom(term.atom);
    if (auto factor = term.coefficient.divide_exactly(divisor))
      result.whole += atom * *factor;
    else
      result.rest += atom * term.coefficient;
  }
  const SymExpr& constant = e.constant();
  if (auto factor = constant.divide_exactly(divisor)) {
    result.whole += IndexExpr(*factor);
  } else if (constant.is_constant() && divisor.is_constant()) {
    int64_t quotient = constant.constant() / divisor.constant();
    int64_t remainder = constant.constant() % divisor.constant();
    if (remainder < 0) remainder += divisor.constant(), --quotient;
    result.whole += IndexExpr(SymExpr(quotient));
    result.rest += IndexExpr(SymExpr(remainder));
  } else {
    result.rest += IndexExpr(constant);
  }
  return result;
}

bool below(const IndexExpr& e, const SymExpr& bound, DimsRef extents) {
  const auto largest = e.largest(extents);
  return largest && (bound - SymExpr(1)).covers(*largest);
}

}  // namespace

bool operator==(const IndexExpr::Atom& a, const IndexExpr::Atom& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == IndexExpr::Atom::Kind::variable) return a.variable == b.variable;
  return a.divisor == b.divisor && *a.operand == *b.operand;
}

IndexExpr IndexExpr::variable(uint32_t number) {
  IndexExpr e;
  e.terms_.push_back({Atom{Atom::Kind::variable, number, nullptr, SymExpr()}, SymExpr(1)});
  return e;
}

IndexExpr IndexExpr::from_atom(Atom atom) {
  IndexExpr e;
  e.terms_.push_back({std::move(atom), SymExpr(1)});
  return e;
}

bool IndexExpr::is_variable(uint32_t number) const {
  return terms_.size() == 1 && terms_[0].atom.kind == Atom::Kind::variable &&
         terms_[0].atom.variable == number && terms_[0].coefficient.is(1) && constant_.is(0);
}

bool IndexExpr::is_affine() const {
  return llvm::all_of(terms_, [](const Term& t) { return t.atom.kind == Atom::Kind::variable; });
}

SymExpr IndexExpr::coefficient(uint32_t variable) const {
  for (const Term& term : terms_)
    if (term.atom.kind == Atom::Kind::variable && term.atom.variable == variable)
      return term.coefficient;
  return 0;
}

void IndexExpr::add_term(const Term& term) {
  auto at = llvm::find_if(terms_, [&](const Term& t) { return t.atom == term.atom; });
  if (at != terms_.end()) {
    at->coefficient += term.coefficient;
    if (at->coefficient.is(0)) terms_.erase(at);
    return;
  }
  if (term.coefficient.is(0)) return;
  // Variables first, by number; quotients and remainders in the order of their appearance.
  if (term.atom.kind == Atom::Kind::variable)
    at = llvm::find_if(terms_, [&](const Term& t) {
      return t.atom.kind != Atom::Kind::variable || t.atom.variable > term.atom.variable;
    });
  terms_.insert(at, term);
}

void IndexExpr::recombine() {
  // (e / d) * (d * c) + (e mod d) * c is e * c.
  for (size_t i = 0; i < terms_.size(); ++i) {
    if (terms_[i].atom.kind != Atom::Kind::remainder) continue;
    const Term remainder = terms_[i];
    for (size_t j = 0; j < terms_.size(); ++j) {
      const Term quotient = terms_[j];
      if (quotient.atom.kind != Atom::Kind::quotient ||
          quotient.atom.divisor != remainder.atom.divisor ||
          quotient.coefficient != remainder.coefficient * remainder.atom.divisor ||
          !(*quotient.atom.operand == *remainder.atom.operand))
        continue;
      terms_.erase(terms_.begin() + std::max(i, j));
      terms_.erase(terms_.begin() + std::min(i, j));
      *this += *remainder.atom.operand * remainder.coefficient;
      return;
    }
  }
}

IndexExpr& IndexExpr::operator+=(const IndexExpr& other) {
  for (const Term& term : other.terms_) add_term(term);
  constant_ += other.constant_;
  recombine();
  return *this;
}

IndexExpr operator*(const IndexExpr& a, const SymExpr& factor) {
  IndexExpr result(a.constant_ * factor);
  if (factor.is(0)) return result;
  for (const IndexExpr::Term& term : a.terms_)
    result.terms_.push_back({term.atom, term.coefficient * factor});
  return result;
}

std::optional<SymExpr> IndexExpr::largest(DimsRef extents) const {
  SymExpr sum = constant_;
  if (!constant_.covers(0)) return std::nullopt;
  for (const Term& term : terms_) {
    if (!term.coefficient.covers(0)) return std::nullopt;
    SymExpr bound;
    switch (term.atom.kind) {
      case Atom::Kind::variable:
        if (term.atom.variable >= extents.size()) return std::nullopt;
        bound = SymExpr(extents[term.atom.variable]) - SymExpr(1);
        break;
      case Atom::Kind::remainder:
        bound = term.atom.divisor - SymExpr(1);
        break;
      case Atom::Kind::quotient: {
        const auto operand = term.atom.operand->largest(extents);
        if (!operand) return std::nullopt;
        const auto whole = (*operand + SymExpr(1)).divide_exactly(term.atom.divisor);
        if (whole)
          bound = *whole - SymExpr(1);
        else if (operand->is_constant() && term.atom.divisor.is_constant())
          bound = operand->constant() / term.atom.divisor.constant();
        else
          return std::nullopt;
      }
    }
    sum += bound * term.coefficient;
  }
  return sum;
}

IndexExpr IndexExpr::quotient(const IndexExpr& e, const SymExpr& divisor, DimsRef extents) {
  if (divisor.is(1)) return e;
  Split parts = split(e, divisor);
  if (below(parts.rest, divisor, extents)) return parts.whole;
  parts.whole += from_atom(Atom{Atom::Kind::quotient, 0,
                                std::make_shared<const IndexExpr>(std::move(parts.rest)), divisor});
  return parts.whole;
}

IndexExpr IndexExpr::remainder(const IndexExpr& e, const SymExpr& divisor, DimsRef extents) {
  if (divisor.is(1)) return IndexExpr();
  Split parts = split(e, divisor);
  if (below(parts.rest, divisor, extents)) return parts.rest;
  return from_atom(Atom{Atom::Kind::remainder, 0,
                        std::make_shared<const IndexExpr>(std::move(parts.rest)), divisor});
}

IndexMap identity_map(size_t rank) {
  IndexMap map;
  for (uint32_t i = 0; i < rank; ++i) map.push_back(IndexExpr::variable(i));
  return map;
}

IndexExpr linearize(DimsRef dims, const IndexMap& coords) {
  const auto strides = row_major_strides(dims);
  IndexExpr offset;
  for (size_t i = 0; i < dims.size(); ++i) offset += coords[i] * strides[i];
  return offset;
}

IndexMap delinearize(DimsRef dims, const IndexExpr& offset, DimsRef extents) {
  IndexMap coords(dims.size());
  if (llvm::is_contained(dims, Dim(0))) return coords;  // no element is ever read
  size_t outermost = 0;
  while (outermost < dims.size() && dims[outermost].is(1)) ++outermost;
  // From the innermost axis outwards, so that linearize() finds each quotient beside its remainder.
  IndexExpr rest = offset;
  for (size_t i = dims.size(); i-- > outermost;) {
    if (dims[i].is(1)) continue;
    coords[i] = i == outermost ? rest : IndexExpr::remainder(rest, SymExpr(dims[i]), extents);
    rest = IndexExpr::quotient(rest, SymExpr(dims[i]), extents);
  }
  return coords;
}

}  // namespace sinter
