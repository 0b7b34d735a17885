// tiled_linear and tiled_codes. Constraints:
//   C26  operands of 16-bit elements of one type, rows of a multiple of 8 elements, at least one of
//   each
//   C32  tiled_codes: x of 16-bit elements, a format without minima, no splits
#include "ir/code_format.h"
#include "ir/inference.h"
#include "kernels/products/order.h"

namespace sinter {

Status check_tiled_linear(const Inference& op, const TensorType&) {
  const DType elements = op.operands[0].dtype;
  if (dtype_info(elements).bits != 16)
    return op.reject(26, fmt::format("{} elements, must have 16 bits", to_string(elements)));
  if (op.operands[1].dtype != elements)
    return op.reject(26, fmt::format("x {}, w {}: must have one type", op.show(op.operands[0]),
                                     op.show(op.operands[1])));
  const Dims& w = op.operands[1].dims;
  if (w[0].is(0) || !is_tiled_linear_length(w[1].constant()))
    return op.reject(26, fmt::format("w {}: rows of tiled_linear have a multiple of {} elements",
                                     op.show(op.operands[1]), kTiledLinearMultiple));
  return {};
}

Status check_tiled_codes(const Inference& op, const TensorType&) {
  const DType elements = op.operands[0].dtype;
  if (dtype_info(elements).bits != 16)
    return op.reject(32, fmt::format("{} elements, must have 16 bits", to_string(elements)));
  if (code_format(op.attrs).minima) return op.reject(32, "codes with minima, must have none");
  if (op.attrs.has(AttrName::splits)) return op.reject(32, "splits, must have none");
  return {};
}

}  // namespace sinter
