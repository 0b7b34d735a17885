#include "passes/attention/key_ranges.h"

#include <llvm/ADT/STLExtras.h>

#include <limits>

namespace sinter {
bool KeyRanges::is_free(const Term& term) const {
  return !terms_.depends_on(term, key_) && llvm::none_of(others_, [&](uint32_t variable) {
    return terms_.depends_on(term, variable);
  });
}

bool KeyRanges::restrict(const Term& truth, KeyRange& range) {
  KeyRange changed = range;
  if (!add(truth, changed)) return false;
  range = std::move(changed);
  return true;
}

bool KeyRanges::add(const Term& truth, KeyRange& range) {
  if (truth == Term{1}) return true;
  if (is_free(truth)) {
    range.conditions.push_back(truth);
    return true;
  }
  const TermNode node = *terms_.node_of(truth);
  if (node.kind != TermNode::Kind::truth) return false;
  switch (node.function) {
    case OpKind::less_equal:
      return add_at_most_zero(node.operands[0], range);
    case OpKind::logical_and:
      return add(node.operands[0], range) && add(node.operands[1], range);
    case OpKind::logical_or:
      return add_union(node.operands[0], node.operands[1], range);
    default:
      return false;
  }
}

/// x <= 0, where one node of x depends on the key.
bool KeyRanges::add_at_most_zero(const Term& x, KeyRange& range) {
  std::optional<TermPart> of_key;
  for (const TermPart& part : parts_of(x)) {
    if (!terms_.depends_on(Term::variable(part.node), key_)) continue;
    if (of_key) return false;
    of_key = part;
  }
  if (!of_key) return false;
  const int64_t factor = of_key->factor;
  const Term rest = x - Term::variable(of_key->node) * factor;
  if (!is_free(rest)) return false;
  // factor * node <= -rest: node <= floor(-rest / factor), or node >= ceil(rest / -factor).
  const auto divided = [&](const Term& a) {
    const int64_t by = std::abs(factor);
    return by == 1 ? a : terms_.function(OpKind::div_floor, {a, Term{by}});
  };
  const TermNode node = terms_[of_key->node];
  const Term bound = factor > 0 ? divided(rest * -1) : divided(rest * -1) * -1;
  if (node.kind == TermNode::Kind::position) {
    if (factor < 0) return add_low(bound, range);
    range.highs.push_back(bound);
    return true;
  }
  if (node.kind != TermNode::Kind::function) return false;
  return factor > 0 ? add_function_at_most(node, bound, range)
                    : add_function_at_least(node, bound, range);
}

bool KeyRanges::add_function_at_most(const TermNode& function, const Term& most, KeyRange& range) {
  const Term &a = function.operands[0], &b = function.operands.back();
  switch (function.function) {
    case OpKind::div_floor:  // a <= most * b + b - 1
      return add_at_most_zero(a - most * constant_of(b) - Term{constant_of(b) - 1}, range);
    case OpKind::abs:
      return add_at_most_zero(a - most, range) && add_at_most_zero(a * -1 - most, range);
    case OpKind::maximum:
      return add(terms_.at_most_zero(a - most), range) && add(terms_.at_most_zero(b - most), range);
    default:
      return false;
  }
}

bool KeyRanges::add_function_at_least(const TermNode& function, const Term& least,
                                      KeyRange& range) {
  const Term &a = function.operands[0], &b = function.operands.back();
  switch (function.function) {
    case OpKind::div_floor:  // a >= least * b
      return add_at_most_zero(least * constant_of(b) - a, range);
    case OpKind::minimum:
      return add(terms_.at_most_zero(least - a), range) &&
             add(terms_.at_most_zero(least - b), range);
    default:
      return false;
  }
}

/// A low end bounds the sink too, which no range says.
bool KeyRanges::add_low(const Term& low, KeyRange& range) {
  range.lows.push_back(low);
  return range.sink == 0;
}

bool KeyRanges::add_union(const Term& a, const Term& b, KeyRange& range) {
  KeyRange first, second;
  if (!add(a, first) || !add(b, second)) return false;
  const auto is_plain = [](const KeyRange& part) {
    return part.conditions.empty() && part.sink == 0;
  };
  if (!is_plain(first) || !is_plain(second)) return false;
  return add_touching(first, second, range) || add_sink(first, second, range) ||
         add_sink(second, first, range);
}

/// The union of two ranges that touch or overlap for all positions is one range.
bool KeyRanges::add_touching(const KeyRange& a, const KeyRange& b, KeyRange& range) {
  const auto end = [&](OpKind kind, const std::vector<Term>& ends) {
    return ends.empty() ? std::nullopt : std::optional(terms_.joined(kind, ends));
  };
  const auto low_a = end(OpKind::maximum, a.lows), low_b = end(OpKind::maximum, b.lows);
  const auto high_a = end(OpKind::minimum, a.highs), high_b = end(OpKind::minimum, b.highs);
  const auto touch = [&](const std::optional<Term>& low, const std::optional<Term>& high) {
    return !low || !high || terms_.is_at_most_zero(*low - *high - Term{1});
  };
  if (!touch(low_a, high_b) || !touch(low_b, high_a)) return false;
  if (low_a && low_b && !add_low(terms_.function(OpKind::minimum, {*low_a, *low_b}), range))
    return false;
  if (high_a && high_b) range.highs.push_back(terms_.function(OpKind::maximum, {*high_a, *high_b}));
  return true;
}

/// The union of leading keys, as many as a constant says, and a range that need not touch them. The
/// leading keys may end before that number, if the range never ends behind them:
///
///   0 .. min(c, m)  and  low .. high, high <= m:
///   the keys of 0 .. c and of low .. max(high, min(c, m)) up to max(high, min(c, m))
bool KeyRanges::add_sink(const KeyRange& leading, const KeyRange& other, KeyRange& range) {
  if (!leading.lows.empty() || leading.highs.empty()) return false;
  const Term end = terms_.joined(OpKind::minimum, leading.highs);
  std::optional<int64_t> last;
  for (const Term& high : leading.highs) {
    if (is_constant(high)) {
      last = std::min(last.value_or(constant_of(high)), constant_of(high));
      continue;
    }
    const auto ends_before = [&](const Term& x) { return terms_.is_at_most_zero(x - high); };
    if (!llvm::any_of(other.highs, ends_before)) return false;
  }
  if (!last || *last < 0 || *last >= std::numeric_limits<int32_t>::max()) return false;
  const int64_t sink = *last + 1;
  if (range.sink != (range.lows.empty() ? 0 : sink)) return false;
  range.sink = sink;
  llvm::append_range(range.lows, other.lows);
  if (other.highs.empty()) return true;
  const Term high = terms_.joined(OpKind::minimum, other.highs);
  range.highs.push_back(
      terms_.is_at_most_zero(end - high) ? high : terms_.function(OpKind::maximum, {high, end}));
  return true;
}

}  // namespace sinter
