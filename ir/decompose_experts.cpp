// expert_sum: a product and a sum for each expert of a token.
#include "ir/decomposition.h"

namespace sinter {

ValueId decompose_expert_sum(Decomposition& d) {
  Builder& b = d.b;
  const TensorType x = d.type(d.operands[0]), of_weights = d.type(d.operands[1]);
  const auto term = [&](int64_t rank) {
    const ValueId row = b.reshape(b.slice(d.operands[0], 1, rank, Dim(1)), {x.dims[0], x.dims[2]});
    const ValueId weight = b.slice(d.operands[1], 1, rank, Dim(1));
    if (of_weights.dtype == x.dtype) return d.wide(b.mul(row, weight));
    const ValueId wide = d.wide(row);
    return b.mul(wide, weight);
  };
  ValueId sum = term(0);
  for (int64_t rank = 1; rank < x.dims[1].constant(); ++rank) {
    const ValueId next = term(rank);
    sum = b.add(sum, next);
  }
  return d.finish(sum);
}

}  // namespace sinter
