#include "passes/key_ranges.h"

#include <llvm/ADT/STLExtras.h>

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
  const TermNode node = terms_[truth.factors.begin()->first];
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
  Term rest = x;
  std::optional<uint32_t> of_key;
  for (const auto& [node, factor] : x.factors) {
    if (!terms_.depends_on(Term{0, {{node, 1}}}, key_)) continue;
    if (of_key) return false;
    of_key = node;
    rest.factors.erase(node);
  }
  if (!of_key || !is_free(rest)) return false;
  // factor * node <= -rest: node <= floor(-rest / factor), or node >= ceil(rest / -factor).
  const int64_t factor = x.factor(*of_key);
  const auto divided = [&](const Term& a) {
    const int64_t by = std::abs(factor);
    return by == 1 ? a : terms_.function(OpKind::div_floor, {a, Term{by}});
  };
  const TermNode node = terms_[*of_key];
  const Term bound = factor > 0 ? divided(rest * -1) : divided(rest * -1) * -1;
  if (node.kind == TermNode::Kind::position) {
    (factor > 0 ? range.highs : range.lows).push_back(bound);
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
      return add_at_most_zero(a - most * b.constant - Term{b.constant - 1}, range);
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
      return add_at_most_zero(least * b.constant - a, range);
    case OpKind::minimum:
      return add(terms_.at_most_zero(least - a), range) &&
             add(terms_.at_most_zero(least - b), range);
    default:
      return false;
  }
}

/// The union of two ranges that touch or overlap for all positions is one range.
bool KeyRanges::add_union(const Term& a, const Term& b, KeyRange& range) {
  KeyRange first, second;
  if (!add(a, first) || !add(b, second)) return false;
  if (!first.conditions.empty() || !second.conditions.empty()) return false;
  const auto end = [&](OpKind kind, const std::vector<Term>& ends) {
    return ends.empty() ? std::nullopt : std::optional(terms_.joined(kind, ends));
  };
  const auto low_a = end(OpKind::maximum, first.lows), low_b = end(OpKind::maximum, second.lows);
  const auto high_a = end(OpKind::minimum, first.highs);
  const auto high_b = end(OpKind::minimum, second.highs);
  const auto touch = [&](const std::optional<Term>& low, const std::optional<Term>& high) {
    return !low || !high || terms_.is_at_most_zero(*low - *high - Term{1});
  };
  if (!touch(low_a, high_b) || !touch(low_b, high_a)) return false;
  if (low_a && low_b) range.lows.push_back(terms_.function(OpKind::minimum, {*low_a, *low_b}));
  if (high_a && high_b) range.highs.push_back(terms_.function(OpKind::maximum, {*high_a, *high_b}));
  return true;
}

}  // namespace sinter
