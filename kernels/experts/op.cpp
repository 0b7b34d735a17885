// expert_linear. Constraint:
//   C39  expert_linear: x [N, K] or [N, k, K] and w [E, M, K] of one float type, all but N
//        constant, 1 .. 2^30; experts i32 [N, k]
#include "ir/inference.h"

namespace sinter {

Result<TensorType> infer_expert_linear(const Inference& op) {
  const TensorType &x = op.operands[0], &w = op.operands[1], &experts = op.operands[2];
  // A kernel counts in 32 bits, and a lane begins a step behind the last element.
  constexpr int64_t kMaxExtent = int64_t{1} << 30;
  const auto is_size = [](Dim dim) {
    return dim.is_constant() && !dim.is(0) && dim.constant() <= kMaxExtent;
  };
  bool fits = is_float(x.dtype) && w.dtype == x.dtype && w.rank() == 3 &&
              llvm::all_of(w.dims, is_size) && experts.dtype == DType::i32 && experts.rank() == 2 &&
              is_size(experts.dims[1]);
  if (fits) {
    Dims rows = x.dims;
    if (x.rank() == 2) rows.insert(rows.begin() + 1, experts.dims[1]);
    fits = rows == Dims{experts.dims[0], experts.dims[1], w.dims[2]};
  }
  if (!fits)
    return op.reject(39, fmt::format("needs x [N, K] or [N, k, K] and w [E, M, K] of one float "
                                     "type, all but N constant, 1 .. 2^30, and experts i32[N, k], "
                                     "got {}, {} and {}",
                                     op.show(x), op.show(w), op.show(experts)));
  return TensorType{x.dtype, {experts.dims[0], experts.dims[1], w.dims[1]}};
}

}  // namespace sinter
