// Terms are read from ops, folded and bounded by one recursion: a fold asks for bounds, a bound for
// operands, a read for folds. So they stand in one file.
#include "ir/position_terms.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <limits>

#include "ir/integers.h"
#include "ir/row_numbers.h"
#include "ir/scalar_math.h"
#include "ir/state_reads.h"

namespace sinter {
namespace {

constexpr int kMaxReads = 200;  // of reads within reads; what lies deeper is an element

std::optional<int64_t> small(const SymExpr& expression) {
  if (!expression.is_constant() || exceeds(expression.constant(), kTermLimit)) return std::nullopt;
  return expression.constant();
}

int64_t upper_bound(Dim dim, llvm::ArrayRef<Symbol> symbols) {
  return std::min(SymExpr(dim).upper_bound(symbols), kTermLimit);
}

}  // namespace

Term PositionTerms::node(TermNode node) {
  const auto found = llvm::find(nodes_, node);
  const auto number = static_cast<uint32_t>(found - nodes_.begin());
  if (found == nodes_.end()) nodes_.push_back(std::move(node));
  return Term::variable(number);
}

Term PositionTerms::position(uint32_t variable) {
  return extents_[variable].is(1) ? Term{} : Term::variable(variable);
}

Term PositionTerms::element(ValueId root, IndexMap coords) {
  return node({.kind = TermNode::Kind::element, .root = root, .coords = std::move(coords)});
}

Term PositionTerms::function(OpKind kind, std::vector<Term> operands) {
  const Term &a = operands[0], &b = operands.back();
  if (kind == OpKind::div_floor || kind == OpKind::mod_floor) {
    const int64_t number = constant_of(a), divisor = constant_of(b);
    if (is_constant(a))
      return Term{kind == OpKind::div_floor ? math::div_floor(number, divisor)
                                            : math::mod_floor(number, divisor)};
    const auto range = bounds(a);
    if (range && range->least >= 0 && range->largest < divisor)
      return kind == OpKind::div_floor ? Term{} : a;
  }
  if (kind == OpKind::maximum || kind == OpKind::minimum) {
    const bool first_is_less = is_at_most_zero(a - b);
    if (first_is_less || is_at_most_zero(b - a))
      return first_is_less == (kind == OpKind::maximum) ? b : a;
  }
  return node(
      {.kind = TermNode::Kind::function, .function = kind, .operands = std::move(operands)});
}

Term PositionTerms::joined(OpKind kind, llvm::ArrayRef<Term> all) {
  Term result = all[0];
  for (const Term& term : all.drop_front()) result = function(kind, {result, term});
  return result;
}

Term PositionTerms::at_most_zero(const Term& x) {
  if (is_at_most_zero(x)) return Term{1};
  if (is_at_most_zero(Term{1} - x)) return Term{0};
  return node({.kind = TermNode::Kind::truth, .function = OpKind::less_equal, .operands = {x}});
}

Term PositionTerms::logical(OpKind kind, std::vector<Term> operands) {
  if (kind == OpKind::logical_not) {
    if (is_constant(operands[0])) return Term{1 - constant_of(operands[0])};
    const TermNode inner = *node_of(operands[0]);
    const auto negated = [&](size_t i) {
      return logical(OpKind::logical_not, {inner.operands[i]});
    };
    switch (inner.function) {  // of an element: input
      case OpKind::less_equal:
        return at_most_zero(Term{1} - inner.operands[0]);
      case OpKind::logical_and:
        return logical(OpKind::logical_or, {negated(0), negated(1)});
      case OpKind::logical_or:
        return logical(OpKind::logical_and, {negated(0), negated(1)});
      case OpKind::logical_not:
        return inner.operands[0];
      default:
        break;
    }
  } else {
    // A constant decides the result, or leaves it to the other operand.
    const int64_t decides = kind == OpKind::logical_or ? 1 : 0;
    for (size_t i : {0, 1})
      if (is_constant(operands[i]))
        return constant_of(operands[i]) == decides ? operands[i] : operands[1 - i];
  }
  return node({.kind = TermNode::Kind::truth, .function = kind, .operands = std::move(operands)});
}

Term PositionTerms::chosen(const Term& condition, const Term& a, const Term& b) {
  const Term otherwise = logical(OpKind::logical_not, {condition});
  return logical(OpKind::logical_or, {logical(OpKind::logical_and, {condition, a}),
                                      logical(OpKind::logical_and, {otherwise, b})});
}

std::optional<PositionTerms::Bounds> PositionTerms::bounds(const Term& term) const {
  Bounds sum{constant_of(term), constant_of(term)};
  for (const auto& [number, factor] : parts_of(term)) {
    const auto part = bounds_of(number);
    if (!part || exceeds(factor, kTermLimit)) return std::nullopt;
    int64_t low = 0, high = 0;
    if (__builtin_mul_overflow(part->least, factor, &low) ||
        __builtin_mul_overflow(part->largest, factor, &high) ||
        __builtin_add_overflow(sum.least, std::min(low, high), &sum.least) ||
        __builtin_add_overflow(sum.largest, std::max(low, high), &sum.largest))
      return std::nullopt;
  }
  return sum;
}

std::optional<PositionTerms::Bounds> PositionTerms::bounds_of(uint32_t number) const {
  const TermNode& node = nodes_[number];
  if (node.kind == TermNode::Kind::position)
    return Bounds{0, std::max<int64_t>(0, upper_bound(extents_[number], symbols_) - 1)};
  if (node.kind == TermNode::Kind::truth) return Bounds{0, 1};
  if (node.kind == TermNode::Kind::element) {
    const DType dtype = graph_[node.root].type.dtype;
    if (dtype == DType::i1) return Bounds{0, 1};
    if (dtype != DType::i32) return std::nullopt;
    return Bounds{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
  const auto a = bounds(node.operands[0]), b = bounds(node.operands.back());
  if (!a || !b) return std::nullopt;
  switch (node.function) {
    case OpKind::div_floor:
      return Bounds{math::div_floor(a->least, b->least), math::div_floor(a->largest, b->least)};
    case OpKind::mod_floor:
      return Bounds{0, b->least - 1};
    case OpKind::abs:
      return Bounds{0, std::max(std::abs(a->least), std::abs(a->largest))};
    case OpKind::maximum:
      return Bounds{std::max(a->least, b->least), std::max(a->largest, b->largest)};
    case OpKind::minimum:
      return Bounds{std::min(a->least, b->least), std::min(a->largest, b->largest)};
    default:
      return std::nullopt;
  }
}

bool PositionTerms::is_at_most_zero(const Term& x) const {
  if (const auto range = bounds(x)) {
    if (range->largest <= 0) return true;
    if (range->least > 0) return false;
  }
  // c * floor(a / c) is at most a and at least a - c + 1.
  for (const auto& [number, factor] : parts_of(x)) {
    const TermNode& part = nodes_[number];
    if (part.kind != TermNode::Kind::function) continue;
    const Term rest = x - Term::variable(number) * factor;
    const Term &a = part.operands[0], &b = part.operands.back();
    const int64_t divisor = constant_of(b);
    if (part.function == OpKind::div_floor && factor % divisor == 0) {
      const Term reached = factor > 0 ? a : a - Term{divisor - 1};
      if (is_at_most_zero(rest + reached * (factor / divisor))) return true;
    }
    const bool takes_larger = part.function == OpKind::maximum;
    if (takes_larger || part.function == OpKind::minimum) {
      const bool with_a = is_at_most_zero(rest + a * factor);
      const bool with_b = is_at_most_zero(rest + b * factor);
      if (takes_larger == (factor > 0) ? with_a && with_b : with_a || with_b) return true;
    }
  }
  return false;
}

bool PositionTerms::depends_on(const IndexExpr& term, uint32_t variable) const {
  const auto depends = [&](const IndexExpr& e) { return depends_on(e, variable); };
  return llvm::any_of(term.terms(), [&](const IndexExpr::Term& part) {
    if (part.atom.kind != IndexExpr::Atom::Kind::variable) return depends(*part.atom.operand);
    const TermNode& node = nodes_[part.atom.variable];
    return part.atom.variable == variable || llvm::any_of(node.coords, depends) ||
           llvm::any_of(node.operands, depends);
  });
}

const TermNode* PositionTerms::node_of(const Term& term) const {
  if (term.terms().size() != 1) return nullptr;
  const uint32_t number = term.terms()[0].atom.variable;
  return term.is_variable(number) ? &nodes_[number] : nullptr;
}

/// An index as a term; nullopt where a size stands in it.
std::optional<Term> PositionTerms::index(const IndexExpr& expression) {
  const auto constant = small(expression.constant());
  if (!constant) return std::nullopt;
  Term sum{*constant};
  for (const IndexExpr::Term& part : expression.terms()) {
    const auto factor = small(part.coefficient);
    if (!factor) return std::nullopt;
    if (part.atom.kind == IndexExpr::Atom::Kind::variable) {
      sum += position(part.atom.variable) * *factor;
      continue;
    }
    const auto operand = index(*part.atom.operand);
    const auto divisor = small(part.atom.divisor);
    if (!operand || !divisor || *divisor < 1) return std::nullopt;
    const bool quotient = part.atom.kind == IndexExpr::Atom::Kind::quotient;
    sum += function(quotient ? OpKind::div_floor : OpKind::mod_floor, {*operand, Term{*divisor}}) *
           *factor;
  }
  return sum;
}

Term PositionTerms::read(ValueId id, const IndexMap& coords) {
  Access access = resolve_access(graph_, id, coords, extents_);
  return read_root(graph_[access.root], access.root, access.coords);
}

Term PositionTerms::read_root(const Op& op, ValueId root, const IndexMap& coords) {
  for (const Known& known : known_[root.index])
    if (known.coords == coords) return known.term;
  // A reader of a state stays where it is.
  if (depth_ == kMaxReads || reads_state(graph_, op)) return element(root, coords);
  ++depth_;
  const auto term = read_op(op, coords);
  --depth_;
  const Term result = term && fits(*term, op.type.dtype) ? *term : element(root, coords);
  known_[root.index].push_back({coords, result});
  return result;
}

/// The type holds all values of the term: nothing wraps around.
bool PositionTerms::fits(const Term& term, DType dtype) const {
  const TermNode* node = node_of(term);
  if ((node && node->kind == TermNode::Kind::element) || dtype == DType::i1) return true;
  const auto range = bounds(term);
  if (!range) return false;
  const int64_t most = dtype == DType::i32 ? std::numeric_limits<int32_t>::max() : kTermLimit;
  return range->least >= -most - (dtype == DType::i32) && range->largest <= most;
}

Term PositionTerms::read_operand(const Op& op, size_t operand, const IndexMap& coords) {
  const ValueId id = op.operands[operand];
  return read(id, broadcast_coords(graph_[id].type.dims, op.type.dims, coords));
}

std::optional<Term> PositionTerms::read_op(const Op& op, const IndexMap& coords) {
  const bool is_truth = op.type.dtype == DType::i1;
  if (!is_truth && !is_integer(op.type.dtype)) return std::nullopt;
  const auto operand = [&](size_t i) { return read_operand(op, i, coords); };
  switch (op.kind) {
    case OpKind::iota:
      return index(coords[static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis))]);
    case OpKind::constant: {
      const Number number = op.attrs.get<Number>(AttrName::value);
      const int64_t value = is_truth                      ? (number.to_i1() ? 1 : 0)
                            : op.type.dtype == DType::i32 ? number.to_i32()
                                                          : number.to_i64();
      return exceeds(value, kTermLimit) ? std::nullopt : std::optional(Term{value});
    }
    case OpKind::copy:
      return operand(0);
    case OpKind::logical_and:
    case OpKind::logical_or:
      return logical(op.kind, {operand(0), operand(1)});
    case OpKind::logical_not:
      return logical(op.kind, {operand(0)});
    case OpKind::less:
    case OpKind::less_equal:
    case OpKind::equal:
      return read_comparison(op, coords);
    case OpKind::cast:
      return read_cast(op, coords);
    case OpKind::neg:
      return operand(0) * -1;
    case OpKind::add:
      return operand(0) + operand(1);
    case OpKind::sub:
      return operand(0) - operand(1);
    case OpKind::mul: {
      const Term a = operand(0), b = operand(1);
      if (!is_constant(a) && !is_constant(b)) return std::nullopt;
      const Term& scaled = is_constant(a) ? b : a;
      const int64_t by = constant_of(is_constant(a) ? a : b);
      if (exceeds(by, std::numeric_limits<int32_t>::max()) || !bounds(scaled)) return std::nullopt;
      return scaled * by;
    }
    case OpKind::abs: {
      const Term a = operand(0);
      return is_constant(a) ? Term{std::abs(constant_of(a))} : function(OpKind::abs, {a});
    }
    case OpKind::div_floor:
    case OpKind::mod_floor: {
      const Term divisor = operand(1);
      if (!is_constant(divisor) || constant_of(divisor) < 1) return std::nullopt;
      return function(op.kind, {operand(0), divisor});
    }
    case OpKind::maximum:
    case OpKind::minimum:
      return function(op.kind, {operand(0), operand(1)});
    case OpKind::concat:
      return read_concat(op, coords);
    case OpKind::cumulative_sum: {  // of zeros
      const auto summed = everywhere(op.operands[0]);
      return summed == Term{} ? summed : std::nullopt;
    }
    case OpKind::where: {
      const Term condition = operand(0);
      if (is_constant(condition)) return operand(constant_of(condition) != 0 ? 1 : 2);
      if (!is_truth) return std::nullopt;
      return chosen(condition, operand(1), operand(2));
    }
    case OpKind::gather:
    case OpKind::embedding:
      return read_gather(op, coords);
    default:
      return std::nullopt;
  }
}

/// From a table whose elements are all alike, or at a row that is a sum of positions.
std::optional<Term> PositionTerms::read_gather(const Op& op, const IndexMap& coords) {
  const TensorType& table = graph_[op.operands[0]].type;
  if (op.kind == OpKind::embedding && table.rank() > 2) return std::nullopt;
  const size_t axis = named_axis(op, table);
  const IndexMap number = number_coords(op, coords);
  const Term row = read(op.operands[1], number);
  const auto range = bounds(row);
  const bool is_place = llvm::all_of(row.terms(), [&](const IndexExpr::Term& part) {
    return part.atom.variable < extents_.size();
  });
  const Dim rows = table.dims[axis];
  if (!range || range->least < 0 || !rows.is_constant() || range->largest >= rows.constant())
    return std::nullopt;  // it may name no row
  if (!is_place) return everywhere(op.operands[0]);
  IndexMap at = op.kind == OpKind::embedding ? IndexMap{IndexExpr(), coords.back()} : coords;
  at[axis] = row;
  return read(op.operands[0], at);
}

/// The number that all elements are.
std::optional<Term> PositionTerms::everywhere(ValueId id) const {
  const DimsRef dims = graph_[id].type.dims;
  PositionTerms all(graph_, dims, symbols_);
  const Term term = all.read(id, identity_map(dims.size()));
  return is_constant(term) ? std::optional(term) : std::nullopt;
}

std::optional<Term> PositionTerms::read_comparison(const Op& op, const IndexMap& coords) {
  const DType from = graph_[op.operands[0]].type.dtype;
  if (from != DType::i32 && from != DType::i64) return std::nullopt;
  const Term a = read_operand(op, 0, coords), b = read_operand(op, 1, coords);
  // Elements of i64 are compared with numbers of less than 2^40 alone: TermBuilder bounds them.
  if (from == DType::i64 && !bounds(a) && !bounds(b)) return std::nullopt;
  if (op.kind == OpKind::less) return at_most_zero(a - b + Term{1});
  const Term below = at_most_zero(a - b);
  if (op.kind == OpKind::less_equal) return below;
  return logical(OpKind::logical_and, {below, at_most_zero(b - a)});
}

std::optional<Term> PositionTerms::read_cast(const Op& op, const IndexMap& coords) {
  const DType from = graph_[op.operands[0]].type.dtype, to = op.type.dtype;
  if (from != DType::i1 && !is_integer(from)) return std::nullopt;
  const Term a = read(op.operands[0], coords);
  if (to == DType::i1 && from != DType::i1)
    return logical(OpKind::logical_not,
                   {logical(OpKind::logical_and, {at_most_zero(a), at_most_zero(a * -1)})});
  // A narrower type takes the nearest number that it has.
  if (from == DType::i64 && to == DType::i32 && !bounds(a)) return std::nullopt;
  if (from == DType::i1 && to != DType::i1 && !is_constant(a)) return std::nullopt;
  return a;
}

/// One sum that all parts are, each at its places: the longest part's, which others of one element
/// continue.
std::optional<Term> PositionTerms::read_concat(const Op& op, const IndexMap& coords) {
  const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
  const auto size = [&](size_t part) { return graph_[op.operands[part]].type.dims[axis]; };
  const auto at = [&](size_t part, IndexExpr place) {
    IndexMap moved = coords;
    moved[axis] = std::move(place);
    return read(op.operands[part], moved);
  };
  llvm::SmallVector<std::optional<int64_t>, 4> begins;
  SymExpr begin;
  size_t longest = 0;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    begins.push_back(small(begin));
    begin += SymExpr(size(i));
    if (upper_bound(size(i), symbols_) > upper_bound(size(longest), symbols_)) longest = i;
  }
  const std::optional<int64_t> start = begins[longest];
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (!start || !begins[i] || (i != longest && !size(i).is(1))) return std::nullopt;
    if (i != longest && !(at(i, IndexExpr()) == at(longest, SymExpr(*begins[i] - *start))))
      return std::nullopt;
  }
  return at(longest, coords[axis] + IndexExpr(SymExpr(-*start)));
}

}  // namespace sinter
