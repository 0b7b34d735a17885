// top_k. Constraint:
//   C38  top_k: x [N, E] of a float type, E a constant, 1 .. 1024; count 1 .. 64, at most E
#include "ir/inference.h"
#include "kernels/top_k/order.h"

namespace sinter {

Result<TensorType> infer_top_k(const Inference& op) {
  const TensorType& x = op.operands[0];
  const auto count = op.attrs.get<int64_t>(AttrName::count);
  if (x.rank() != 2 || !is_float(x.dtype) || !x.dims[1].is_constant() || x.dims[1].is(0) ||
      x.dims[1].constant() > kMaxTopKColumns || count < 1 || count > kMaxTopK ||
      count > x.dims[1].constant())
    return op.reject(
        38, fmt::format("x {}, count {}: needs rows of 1 .. {} elements of a float type, and a "
                        "count of 1 .. {} that is no larger",
                        op.show(x), count, kMaxTopKColumns, kMaxTopK));
  return TensorType{DType::i32, {x.dims[0], Dim(count)}};
}

}  // namespace sinter
