// Which ops a device computes in an order of its own.
#include "ir/device_order.h"

#include <doctest/doctest.h>

#include "ir/builder.h"
#include "ir/symbols.h"

namespace sinter::device_order_test {
namespace {

bool product_has_device_order(DType dtype, Dim tokens, int64_t called_with) {
  const std::vector<Symbol> symbols = {host_symbol("N", 0, 8)};
  Graph graph;
  Builder b(graph, symbols);
  const ValueId x = b.leaf(OpKind::input, {dtype, {tokens, 64}}, "x"),
                w = b.leaf(OpKind::input, {dtype, {32, 64}}, "w");
  const ValueId y =
      b.op(OpKind::linear, {x, w},
           Attributes().set(AttrName::order, Order::gemv).set(AttrName::splits, int64_t{1}), "y");
  return has_device_order(graph, graph[y], {called_with});
}

TEST_CASE("tensor cores multiply several tokens of a 16-bit type") {
  CHECK(product_has_device_order(DType::f16, 2, 0));
  CHECK(product_has_device_order(DType::bf16, SymbolId{0}, 8));
  CHECK_FALSE(product_has_device_order(DType::bf16, SymbolId{0}, 1));
  CHECK_FALSE(product_has_device_order(DType::f16, 1, 0));
  CHECK_FALSE(product_has_device_order(DType::f32, 8, 0));
}

TEST_CASE("other ops have an order that the host keeps to") {
  Graph graph;
  Builder b(graph, {});
  const ValueId x = b.leaf(OpKind::input, {DType::f16, {4, 64}}, "x");
  const ValueId sums =
      b.op(OpKind::cumulative_sum, {x}, Attributes().set(AttrName::axis, int64_t{1}));
  CHECK_FALSE(has_device_order(graph, graph[sums], {}));
  CHECK_FALSE(has_device_order(graph, graph[b.op(OpKind::exp, {x})], {}));
}

}  // namespace
}  // namespace sinter::device_order_test
