// Patterns of values: an op of a kind whose operands match patterns in turn. A pattern is a
// function of a graph and a value. It binds what it finds, which counts only if the whole pattern
// matches:
//
//   ValueId x;
//   float factor = 0;
//   if (match::mul(match::value(x), match::number(factor))(graph, id)) ...   // x * factor
#pragma once

#include <tuple>

#include "ir/float_constant.h"

namespace sinter::match {

/// Any value.
inline auto value(ValueId& bound) {
  return [&bound](const Graph&, ValueId id) {
    bound = id;
    return true;
  };
}

/// A constant of a float type.
inline auto number(float& bound) {
  return [&bound](const Graph& graph, ValueId id) {
    const auto number = float_constant(graph[id]);
    bound = number.value_or(bound);
    return number.has_value();
  };
}
inline auto equal_to(float wanted) {
  return [wanted](const Graph& graph, ValueId id) { return float_constant(graph[id]) == wanted; };
}

/// The value that is read through views, if any, matches the pattern.
template <typename Pattern>
auto behind_views(Pattern pattern) {
  return [=](const Graph& graph, ValueId id) { return pattern(graph, root_of(graph, id)); };
}

/// The first pattern that matches binds.
template <typename... Patterns>
auto either(Patterns... patterns) {
  return [=](const Graph& graph, ValueId id) { return (patterns(graph, id) || ...); };
}

/// An op of the kind with these operands; without patterns, with any operands.
template <typename... Operands>
auto op(OpKind kind, Operands... operands) {
  return [=](const Graph& graph, ValueId id) {
    const Op& op = graph[id];
    [[maybe_unused]] const auto* operand = op.operands.begin();
    return op.kind == kind &&
           (sizeof...(operands) == 0 || op.operands.size() == sizeof...(operands)) &&
           (operands(graph, *operand++) && ...);
  };
}

/// An op of the kind with these two operands in either order.
template <typename A, typename B>
auto in_any_order(OpKind kind, A a, B b) {
  return either(op(kind, a, b), op(kind, b, a));
}

#define SINTER_OP(name, ...)              \
  template <typename... Operands>         \
  auto name(Operands... operands) {       \
    return op(OpKind::name, operands...); \
  }
#define SINTER_ELEMENTWISE(name, ...) SINTER_OP(name)
#include "ir/ops.def"

}  // namespace sinter::match
