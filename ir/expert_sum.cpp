// expert_sum: the results of a token's experts, weighted and added. Constraint:
//   C37  x [N, k, D] of a float type, weights [N, k] of the same type or f32; k a constant, 1 .. 64
#include "ir/decomposition.h"
#include "ir/inference.h"

namespace sinter {

Result<TensorType> infer_expert_sum(const Inference& op) {
  constexpr int64_t kMost = 64;
  const TensorType &x = op.operands[0], &weights = op.operands[1];
  if (x.rank() != 3 || !is_float(x.dtype) || weights.dims != Dims{x.dims[0], x.dims[1]} ||
      (weights.dtype != x.dtype && weights.dtype != DType::f32) || !x.dims[1].is_constant() ||
      x.dims[1].constant() < 1 || x.dims[1].constant() > kMost)
    return op.reject(37, fmt::format("needs x [N, k, D] and weights [N, k] of its type or f32, k 1 "
                                     ".. {}, got {} and {}",
                                     kMost, op.show(x), op.show(weights)));
  return TensorType{x.dtype, {x.dims[0], x.dims[2]}};
}

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
