// expert_sum: the results of a token's experts, weighted and added. Constraint:
//   C37  expert_sum: x [N, k, D] of a float type, weights [N, k] of the same type or f32; k a
//        constant, 1 .. 64
#include "ir/inference.h"

namespace sinter {

Result<TensorType> infer_expert_sum(const Inference& op) {
  constexpr int64_t kMaxRows = 64;
  const TensorType &x = op.operands[0], &weights = op.operands[1];
  if (x.rank() != 3 || !is_float(x.dtype) || weights.dims != Dims{x.dims[0], x.dims[1]} ||
      (weights.dtype != x.dtype && weights.dtype != DType::f32) || !x.dims[1].is_constant() ||
      x.dims[1].constant() < 1 || x.dims[1].constant() > kMaxRows)
    return op.reject(37, fmt::format("needs x [N, k, D] and weights [N, k] of its type or f32, k 1 "
                                     ".. {}, got {} and {}",
                                     kMaxRows, op.show(x), op.show(weights)));
  return TensorType{x.dtype, {x.dims[0], x.dims[2]}};
}

}  // namespace sinter
