// Reductions down columns, of values made for them more often than not, and what reads them: what
// stands before and after may share their kernel, and so may a second one.
#include <array>

#include "differential/graph_generator.h"

namespace sinter {

void GraphGenerator::column_reduction() {
  using enum OpKind;
  const Value x = pick([](const TensorType& t) { return is_float(t.dtype) && t.rank() >= 2; });
  if (!x) return;
  Value front = x;
  const TensorType type = graph_[*x].type;
  if (random_.chance(70)) {
    const ValueId b =
        random_.chance(50) ? value_of(type) : value_of({type.dtype, {type.dims.back()}});
    front = op(random_.pick(std::array{add, mul, sub}), {*x, b});
  }
  if (!front) return;
  if (random_.chance(40)) front = op(random_.pick(std::array{tanh, neg, sigmoid}), {*front});
  if (!front) return;
  const auto rank = static_cast<int64_t>(type.rank());
  const int64_t first = random_.below(rank - 1), behind = random_.between(first + 1, rank - 1);
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < behind; ++axis) axes.push_back(axis);
  const Attributes over = Attributes().set(AttrName::axes, axes);
  const Value sum = op(random_.chance(70) ? reduce_sum : reduce_max, {*front}, over);
  if (!sum) return;
  if (random_.chance(40))
    op(random_.chance(50) ? reduce_sum : reduce_max, {random_.chance(50) ? *x : *front}, over);
  if (random_.chance(60)) op(random_.pick(std::array{abs, neg, sqrt, tanh}), {*sum});
  if (random_.chance(30)) op(mul, {*sum, value_of(graph_[*sum].type)});
}

}  // namespace sinter
