// gemv: products whose shapes its kernel can take, and quantized_linear. Constraint:
//   C31  quantized_linear: x [..., K] and bias [M] of one float type, K a multiple of 8; a packed
//        matrix i32 [M, words of a packed row], M >= 1; `codes` names a format and `size` is K; a
//        result of the type of x or f32; without an order x [N, K], 1 to 8 rows, and splits a power
//        of two, 1 .. 16
#include "ir/infer_codes.h"
#include "ir/reduction_order.h"
#include "ir/sym_expr.h"
#include "kernels/gemv/order.h"

namespace sinter {

namespace {

/// The splits and rows of x that a gemv can have.
Status check_gemv_launch(const Inference& op, int constraint) {
  const TensorType& x = op.operands[0];
  const int64_t splits = op.attrs.get<int64_t>(AttrName::splits);
  if (splits < 1 || splits > kMaxGemvSplits || (splits & (splits - 1)) != 0)
    return op.reject(constraint, fmt::format("{} splits, must be a power of two, 1 to {}", splits,
                                             kMaxGemvSplits));
  if (x.rank() != 2)
    return op.reject(constraint, fmt::format("x {}, must have rank 2", op.show(x)));
  const int64_t tokens = SymExpr(x.dims[0]).upper_bound(op.symbols);
  if (tokens < 1 || tokens > kMaxGemvTokens)
    return op.reject(constraint,
                     fmt::format("{} tokens, a gemv has 1 to {}", tokens, kMaxGemvTokens));
  return {};
}

}  // namespace

Status check_gemv(const Inference& op, const TensorType&) {
  const TensorType &x = op.operands[0], &w = op.operands[1];
  if (w.dims[0].is(0) || w.dims[1].is(0) || w.dims[1].constant() % kChunk != 0 ||
      w.dtype != x.dtype)
    return op.reject(16, fmt::format("x {}, w {}: a gemv has rows of a multiple of 8 elements of "
                                     "one type",
                                     op.show(x), op.show(w)));
  return check_gemv_launch(op, 16);
}

Result<TensorType> infer_quantized_linear(const Inference& op) {
  const TensorType &x = op.operands[0], &matrix = op.operands[1];
  SINTER_LET(packed, infer_packed_codes(op, 31));
  SINTER_TRY(packed.check_matrix(op, 31, matrix));
  if (!order_of(op.attrs)) {
    if (!op.attrs.has(AttrName::splits)) return op.reject(31, "splits are missing");
    SINTER_TRY(check_gemv_launch(op, 31));
  }
  const Dim rows = matrix.dims[0];
  const bool has_bias = op.operands.size() == 3;
  if (!is_float(x.dtype) || x.rank() == 0 || !x.dims.back().is(packed.length) ||
      packed.length % kChunk != 0 || rows.is(0) ||
      (has_bias && op.operands[2] != TensorType{x.dtype, {rows}}))
    return op.reject(
        31, fmt::format("x {}, matrix {} of {} codes a row{}", op.show(x), op.show(matrix),
                        packed.length, has_bias ? ", bias " + op.show(op.operands[2]) : ""));
  TensorType result = x;
  result.dims.back() = rows;
  if (!op.attrs.has(AttrName::dtype)) return result;
  result.dtype = op.attrs.get<DType>(AttrName::dtype);
  if (result.dtype != x.dtype && result.dtype != DType::f32)
    return op.reject(31, fmt::format("x {}, the result {}: must be of the operands' type or f32",
                                     op.show(x), op.show(result)));
  return result;
}

}  // namespace sinter
