#include "ir/region.h"

#include <algorithm>

#include "ir/integers.h"

namespace sinter {
namespace {

/// Part of a loop variable in a mixed radix: the variable is the sum of weight × digit over its
/// digits, each of which takes all values of first .. first + count - 1 whatever the others are.
struct Digit {
  uint32_t variable;
  int64_t weight, first, count;
};

/// An index expression over digits.
struct DigitSum {
  struct Term {
    size_t digit;
    int64_t coefficient;
  };
  int64_t constant = 0;
  llvm::SmallVector<Term, 4> terms;

  DigitSum& add(const DigitSum& other, int64_t factor) {
    constant += other.constant * factor;
    for (const Term& term : other.terms) {
      const auto same =
          llvm::find_if(terms, [&](const Term& own) { return own.digit == term.digit; });
      if (same == terms.end())
        terms.push_back({term.digit, term.coefficient * factor});
      else
        same->coefficient += term.coefficient * factor;
    }
    llvm::erase_if(terms, [](const Term& term) { return term.coefficient == 0; });
    return *this;
  }
};

/// Counts the elements of one read. Any step may find that it does not know: nullopt.
class RegionOfRead {
 public:
  RegionOfRead(const Read& read, DimsRef root, llvm::ArrayRef<int64_t> values)
      : read_(read), values_(values), root_(extents(root)), loop_(extents(read.space)) {}

  IndexSet run() {
    const int64_t elements = elements_of(root_);
    if (llvm::is_contained(loop_, 0)) return IndexSet(elements);
    std::optional<IndexSet> set = exact();
    return set ? std::move(*set) : IndexSet::at_most(elements, elements_of(loop_));
  }

 private:
  llvm::SmallVector<int64_t, 4> extents(DimsRef dims) const {
    llvm::SmallVector<int64_t, 4> result;
    for (Dim dim : dims)
      result.push_back(dim.is_constant() ? dim.constant() : values_[dim.symbol().index]);
    return result;
  }
  std::optional<int64_t> value(const SymExpr& e) const { return e.evaluate(values_); }

  std::optional<IndexSet> exact();
  bool narrow_loop();
  bool make_digits();
  void add_divisors(const IndexExpr& e, uint32_t variable,
                    llvm::SmallVectorImpl<int64_t>& divisors) const;
  std::optional<DigitSum> digits(const IndexExpr& e) const;
  std::optional<DigitSum> digits(const IndexExpr::Atom& atom) const;
  std::optional<IndexSet> axis_set(const DigitSum& sum, int64_t extent) const;

  const Read& read_;
  llvm::ArrayRef<int64_t> values_;
  llvm::SmallVector<int64_t, 4> root_, loop_;
  llvm::SmallVector<LoopRange, 2> periodic_;  // restrictions of remainders
  llvm::SmallVector<int64_t, 4> begin_;       // of each variable's values
  llvm::SmallVector<Digit, 8> digits_;
};

/// Takes restrictions of whole variables into the loop's bounds; the others stay in periodic_.
bool RegionOfRead::narrow_loop() {
  begin_.assign(loop_.size(), 0);
  for (const LoopRange& only : llvm::reverse(read_.only)) {  // the outermost concat stands last
    int64_t& begin = begin_[only.variable];
    int64_t& extent = loop_[only.variable];
    const int64_t end = begin + extent;
    if (end <= only.shift + only.modulus && begin >= only.shift) {
      begin = std::max(begin, only.shift + only.begin);
      extent = std::max<int64_t>(std::min(end, only.shift + only.end) - begin, 0);
    } else if (only.shift == begin && extent % only.modulus == 0) {
      periodic_.push_back(only);
    } else {
      return false;
    }
  }
  return true;
}

/// Distances at which quotients and remainders of `e` cut the variable.
void RegionOfRead::add_divisors(const IndexExpr& e, uint32_t variable,
                                llvm::SmallVectorImpl<int64_t>& divisors) const {
  for (const IndexExpr::Term& term : e.terms()) {
    if (term.atom.kind == IndexExpr::Atom::Kind::variable) continue;
    add_divisors(*term.atom.operand, variable, divisors);
    const auto divisor = value(term.atom.divisor);
    const auto own = value(term.atom.operand->coefficient(variable));
    if (!divisor || !own || *own <= 0) continue;
    if (*divisor % *own == 0) divisors.push_back(*divisor / *own);
  }
}

bool RegionOfRead::make_digits() {
  for (uint32_t i = 0; i < loop_.size(); ++i) {
    llvm::SmallVector<int64_t, 4> cuts;
    for (const IndexExpr& e : read_.coords) add_divisors(e, i, cuts);
    for (const LoopRange& only : periodic_)
      if (only.variable == i) cuts.push_back(only.modulus);
    llvm::sort(cuts);
    int64_t weight = 1;
    const size_t first = digits_.size();
    for (int64_t cut : cuts) {
      if (cut <= weight || cut % weight != 0 || loop_[i] % cut != 0) continue;
      digits_.push_back({i, weight, 0, cut / weight});
      weight = cut;
    }
    digits_.push_back({i, weight, 0, loop_[i] / weight});
    for (const LoopRange& only : periodic_) {
      if (only.variable != i) continue;
      // The remainder's highest digit is the one below the cut.
      const auto highest = llvm::find_if(
          llvm::MutableArrayRef(digits_).drop_front(first),
          [&](const Digit& digit) { return digit.weight * digit.count == only.modulus; });
      if (highest == digits_.end() || only.begin % highest->weight != 0 ||
          only.end % highest->weight != 0)
        return false;
      highest->first = only.begin / highest->weight;
      highest->count = (only.end - only.begin) / highest->weight;
    }
  }
  return true;
}

std::optional<DigitSum> RegionOfRead::digits(const IndexExpr& e) const {
  const auto constant = value(e.constant());
  if (!constant) return std::nullopt;
  DigitSum sum{*constant, {}};
  for (const IndexExpr::Term& term : e.terms()) {
    const auto coefficient = value(term.coefficient);
    const auto atom = digits(term.atom);
    if (!coefficient || !atom) return std::nullopt;
    sum.add(*atom, *coefficient);
  }
  return sum;
}

std::optional<DigitSum> RegionOfRead::digits(const IndexExpr::Atom& atom) const {
  if (atom.kind == IndexExpr::Atom::Kind::variable) {
    DigitSum sum{begin_[atom.variable], {}};
    for (size_t k = 0; k < digits_.size(); ++k)
      if (digits_[k].variable == atom.variable) sum.terms.push_back({k, digits_[k].weight});
    return sum;
  }
  const auto operand = digits(*atom.operand);
  const auto divisor = value(atom.divisor);
  if (!operand || !divisor || *divisor <= 0) return std::nullopt;
  // Terms that the divisor divides are the quotient if the others stay below the divisor.
  DigitSum quotient, remainder;
  remainder.constant = operand->constant % *divisor;
  if (remainder.constant < 0) remainder.constant += *divisor;
  quotient.constant = (operand->constant - remainder.constant) / *divisor;
  int64_t low = remainder.constant, high = remainder.constant;
  for (const DigitSum::Term& term : operand->terms) {
    if (term.coefficient % *divisor == 0) {
      quotient.terms.push_back({term.digit, term.coefficient / *divisor});
      continue;
    }
    remainder.terms.push_back(term);
    const Digit& digit = digits_[term.digit];
    const int64_t first = term.coefficient * digit.first;
    const int64_t last = term.coefficient * (digit.first + digit.count - 1);
    low += std::min(first, last);
    high += std::max(first, last);
  }
  if (low < 0 || high >= *divisor) return std::nullopt;
  return atom.kind == IndexExpr::Atom::Kind::quotient ? quotient : remainder;
}

/// The values of a sum, each term's digit running for itself.
std::optional<IndexSet> RegionOfRead::axis_set(const DigitSum& sum, int64_t extent) const {
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> steps;  // distance, count
  int64_t start = sum.constant;
  for (const DigitSum::Term& term : sum.terms) {
    const Digit& digit = digits_[term.digit];
    start +=
        term.coefficient * (term.coefficient > 0 ? digit.first : digit.first + digit.count - 1);
    steps.push_back({std::abs(term.coefficient), digit.count});
  }
  llvm::sort(steps);
  llvm::SmallVector<IndexSet::Run, 4> runs = {{start, start + 1}};
  for (const auto& [distance, count] : steps) {
    if (runs.size() == 1 && distance <= runs[0].end - runs[0].begin) {
      runs[0].end += distance * (count - 1);
      continue;
    }
    if (runs.size() * static_cast<size_t>(count) > IndexSet::kMaxRuns) return std::nullopt;
    const size_t once = runs.size();
    for (int64_t i = 1; i < count; ++i)
      for (size_t k = 0; k < once; ++k)
        runs.push_back({runs[k].begin + distance * i, runs[k].end + distance * i});
  }
  return IndexSet::of(extent, runs);
}

std::optional<IndexSet> RegionOfRead::exact() {
  if (!narrow_loop()) return std::nullopt;
  if (llvm::is_contained(loop_, 0)) return IndexSet(elements_of(root_));
  if (!make_digits()) return std::nullopt;
  IndexSet set = IndexSet::whole(1);
  std::vector<bool> used(digits_.size(), false);  // by an axis further in
  for (size_t axis = root_.size(); axis-- > 0;) {
    const auto sum = digits(read_.coords[axis]);
    if (!sum) return std::nullopt;
    for (const DigitSum::Term& term : sum->terms) {
      if (digits_[term.digit].count > 1 && used[term.digit]) return std::nullopt;
      used[term.digit] = true;
    }
    const auto own = axis_set(*sum, root_[axis]);
    if (!own) return std::nullopt;
    set = IndexSet::product(*own, set);
  }
  return set;
}

}  // namespace

IndexSet region(const Read& read, DimsRef root, llvm::ArrayRef<int64_t> symbol_values) {
  return RegionOfRead(read, root, symbol_values).run();
}

IndexSet region(const Graph& graph, ValueId id, llvm::ArrayRef<int64_t> symbol_values) {
  const Dims& dims = graph[id].type.dims;
  Access access = resolve_access(graph, id, identity_map(dims.size()), dims);
  return region({access.root, std::move(access.coords), dims, false, {}},
                graph[access.root].type.dims, symbol_values);
}

}  // namespace sinter
