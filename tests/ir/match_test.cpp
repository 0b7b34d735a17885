// Patterns of values.
#include "ir/match.h"

#include <doctest/doctest.h>

#include "ir/builder.h"

namespace sinter::match_test {
namespace {

/// y = (x + 2) * -x, where the 2 is read through a view.
struct Example {
  Graph graph;
  Builder b{graph, {}};
  const ValueId x = b.leaf(OpKind::input, {DType::f32, {8}}, "x");
  const ValueId two = b.constant(2, DType::f32);
  const ValueId seen = b.broadcast(two, {8});
  const ValueId sum = b.add(x, seen);
  const ValueId minus = b.neg(x);
  const ValueId y = b.mul(sum, minus);
};

TEST_CASE("a pattern binds the values and the numbers that it finds") {
  const Example in;
  ValueId x, again;
  float number = 0;
  const auto pattern =
      match::mul(match::add(match::value(x), match::behind_views(match::number(number))),
                 match::neg(match::value(again)));
  CHECK(pattern(in.graph, in.y));
  CHECK(x == in.x);
  CHECK(again == in.x);
  CHECK(number == 2);
  CHECK_FALSE(pattern(in.graph, in.sum));
}

TEST_CASE("operands have the order of the pattern, or any order") {
  const Example in;
  CHECK(match::mul(match::add(), match::neg())(in.graph, in.y));
  CHECK_FALSE(match::mul(match::neg(), match::add())(in.graph, in.y));
  CHECK(match::in_any_order(OpKind::mul, match::neg(), match::add())(in.graph, in.y));
  CHECK_FALSE(match::in_any_order(OpKind::mul, match::neg(), match::neg())(in.graph, in.y));
}

TEST_CASE("an op has as many operands as the pattern, or any number where it names none") {
  const Example in;
  ValueId x;
  CHECK_FALSE(match::mul(match::value(x))(in.graph, in.y));
  CHECK(match::mul()(in.graph, in.y));
  CHECK(match::input()(in.graph, in.x));
}

TEST_CASE("a constant is itself, and another value through views alone") {
  const Example in;
  CHECK(match::equal_to(2)(in.graph, in.two));
  CHECK_FALSE(match::equal_to(3)(in.graph, in.two));
  CHECK_FALSE(match::equal_to(2)(in.graph, in.seen));
  CHECK(match::behind_views(match::equal_to(2))(in.graph, in.seen));
  CHECK_FALSE(match::behind_views(match::equal_to(2))(in.graph, in.x));
}

TEST_CASE("the first alternative that matches binds") {
  const Example in;
  ValueId sign, sum;
  const auto either = match::either(match::neg(match::value(sign)),
                                    match::add(match::value(sum), match::broadcast()));
  CHECK(either(in.graph, in.sum));
  CHECK(sum == in.x);
  CHECK_FALSE(sign.valid());
  CHECK_FALSE(either(in.graph, in.y));
}

}  // namespace
}  // namespace sinter::match_test
