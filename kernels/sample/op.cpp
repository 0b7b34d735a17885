// sample: the choice of tokens.
#include "ir/inference.h"
#include "kernels/sample/order.h"

namespace sinter {

Result<TensorType> infer_sample(const Inference& op) {
  const TensorType& logits = op.operands[0];
  bool fits = logits.rank() == 2 && is_float(logits.dtype) && logits.dims[1].is_constant() &&
              logits.dims[1].constant() >= 1 && logits.dims[1].constant() <= kMaxSampled;
  constexpr DType kTypes[] = {DType::f32, DType::i32, DType::f32, DType::i32, DType::i32};
  for (size_t i = 0; fits && i < 5; ++i)
    fits = op.operands[i + 1] == TensorType{kTypes[i], {logits.dims[0]}};
  if (!fits)
    return op.reject(
        21, fmt::format("logits {}, temperature {}, top_k {}, top_p {}, seed {}, step {}",
                        op.show(logits), op.show(op.operands[1]), op.show(op.operands[2]),
                        op.show(op.operands[3]), op.show(op.operands[4]), op.show(op.operands[5])));
  return TensorType{DType::i32, {logits.dims[0]}};
}

}  // namespace sinter
