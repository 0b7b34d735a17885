// Ops that a caller brings, between elementwise ops, views and what has a kernel of its own.
#include <array>

#include "differential/graph_generator.h"
#include "support/custom_ops.h"

namespace sinter {

void GraphGenerator::custom() {
  using enum OpKind;
  test::register_custom_ops();
  const Value found = pick([](const TensorType& t) {
    return is_float(t.dtype) && t.rank() >= 1 && t.rank() <= 4 && !t.dims.back().is(0);
  });
  if (!found) return;
  Value x = found;
  if (random_.chance(40)) x = op(random_.pick(std::array{tanh, silu, abs}), {*x});
  if (x && random_.chance(30)) x = op(add, {*x, value_of(graph_[*x].type)});
  if (x && random_.chance(15)) x = view_of(*x);
  if (!x || !is_float(graph_[*x].type.dtype) || graph_[*x].type.rank() == 0) return;
  const TensorType type = graph_[*x].type;
  const auto named = [](std::string name) {
    return Attributes().set(AttrName::op, std::move(name));
  };
  Value y;
  if (type.rank() == 2 && type.dims[1].is(4) && random_.chance(60)) {
    y = op(OpKind::custom, {*x}, named("test.above"));
    if (y && random_.chance(50)) op(logical_not, {*y});
    return;
  }
  const bool even = type.dims.back().is_constant() && type.dims.back().constant() % 2 == 0;
  if (type.rank() == 2 && random_.chance(25) && extent(type.dims[1]) <= 1024)
    y = op(OpKind::custom, {*x}, named("test.rotate"));
  else if (random_.chance(30))
    y = op(OpKind::custom, {*x, value_of({type.dtype, {type.dims.back()}})}, named("test.scale"));
  else if (type.rank() == 2 && even && random_.chance(30))
    y = op(OpKind::custom, {*x}, named("test.fold"));
  else
    y = op(OpKind::custom, {*x, value_of({type.dtype, {type.dims.back()}})},
           named(random_.chance(75) ? "test.rms_norm" : "test.closed_norm")
               .set(AttrName::numbers, std::vector<double>{random_.chance(50) ? 0x1p-20 : 1.5}));
  if (!y) return;
  const TensorType result = graph_[*y].type;
  if (random_.chance(40)) y = op(random_.pick(std::array{sub, mul}), {*y, value_of(result)});
  if (y && random_.chance(40)) y = op(random_.pick(std::array{tanh, relu, neg}), {*y});
  if (y && random_.chance(15)) op(softmax, {*y});
}

}  // namespace sinter
