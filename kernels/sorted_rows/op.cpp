// sorted_positions, sorted_places and run_ends. Constraint:
//   C40  numbers i32 [N, k], k a constant and at least 1, fewer than 2^31 of them; count 1 .. 1024
#include "ir/inference.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

Result<TensorType> numbers_of(const Inference& op) {
  constexpr int64_t kMaxCount = 1024;
  const TensorType& numbers = op.operands[0];
  const auto count = op.attrs.get<int64_t>(AttrName::count);
  if (numbers.dtype != DType::i32 || numbers.rank() != 2 || !numbers.dims[1].is_constant() ||
      numbers.dims[1].is(0) || count < 1 || count > kMaxCount)
    return op.reject(40, fmt::format("numbers {}, count {}: needs i32[N, k], k constant and at "
                                     "least 1, and a count of 1 .. {}",
                                     op.show(numbers), count, kMaxCount));
  if (volume(numbers.dims).upper_bound(op.symbols) > INT32_MAX)
    return op.reject(40, fmt::format("numbers {}: must be fewer than 2^31", op.show(numbers)));
  return numbers;
}

}  // namespace

Result<TensorType> infer_sorted_positions(const Inference& op) { return numbers_of(op); }
Result<TensorType> infer_sorted_places(const Inference& op) { return numbers_of(op); }
Result<TensorType> infer_run_ends(const Inference& op) {
  SINTER_TRY(numbers_of(op));
  return TensorType{DType::i32, {Dim(op.attrs.get<int64_t>(AttrName::count))}};
}

}  // namespace sinter
