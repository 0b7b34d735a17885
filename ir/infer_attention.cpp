// attention over a cache, and the part of it between its two products.
#include <cmath>

#include "ir/inference.h"

namespace sinter {
namespace {

/// The attributes of what stands between products and probabilities.
Status check_scores(const Inference& op) {
  const double scale = op.attrs.get<double>(AttrName::scale);
  if (!std::isfinite(scale)) return op.reject(18, fmt::format("scale is {}", scale));
  if (op.attrs.has(AttrName::softcap)) {
    const double softcap = op.attrs.get<double>(AttrName::softcap);
    if (!(softcap > 0) || !std::isfinite(softcap))
      return op.reject(18, fmt::format("softcap is {}, must be > 0 and finite", softcap));
  }
  if (op.attrs.has(AttrName::window) && op.attrs.get<int64_t>(AttrName::window) < 1)
    return op.reject(
        18, fmt::format("window is {}, must be >= 1", op.attrs.get<int64_t>(AttrName::window)));
  return {};
}

}  // namespace

Result<TensorType> infer_attention(const Inference& op) {
  const TensorType &q = op.operands[0], &keys = op.operands[1], &values = op.operands[2];
  const int64_t heads = op.attrs.get<int64_t>(AttrName::heads);
  const int64_t kv_heads = op.attrs.get<int64_t>(AttrName::kv_heads);
  const auto shape_error = [&] {
    return op.reject(
        18, fmt::format("q {}, keys {}, values {}, first {}, slot {}, {} heads, {} kv_heads",
                        op.show(q), op.show(keys), op.show(values), op.show(op.operands[3]),
                        op.show(op.operands[4]), heads, kv_heads));
  };
  if (q.rank() != 2 || keys.rank() != 2 || values.rank() != 2 || !is_float(q.dtype) ||
      keys.dtype != q.dtype || values.dtype != q.dtype || keys.dims[0] != values.dims[0] ||
      heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || !q.dims[1].is_constant() ||
      !keys.dims[1].is_constant() || !values.dims[1].is_constant() ||
      op.operands[3] != TensorType{DType::i32, {q.dims[0]}} || op.operands[4] != op.operands[3])
    return shape_error();
  const int64_t width = q.dims[1].constant(), key_width = keys.dims[1].constant();
  const int64_t value_width = values.dims[1].constant();
  int64_t result_width = 0;
  if (width % heads != 0 || key_width % kv_heads != 0 || value_width % kv_heads != 0 ||
      width / heads != key_width / kv_heads ||
      __builtin_mul_overflow(value_width / kv_heads, heads, &result_width))
    return shape_error();
  SINTER_TRY(check_scores(op));
  return TensorType{q.dtype, {q.dims[0], result_width}};
}

Result<TensorType> infer_attention_softmax(const Inference& op) {
  const TensorType& scores = op.operands[0];
  const DType dtype = op.attrs.get<DType>(AttrName::dtype);
  const bool fits = scores.rank() >= 2 && scores.dtype == DType::f32 && is_float(dtype) &&
                    op.operands[1] == TensorType{DType::i32, {scores.dims[scores.rank() - 2]}} &&
                    op.operands[2] == op.operands[1];
  if (!fits)
    return op.reject(18, fmt::format("scores {}, first {}, slot {}", op.show(scores),
                                     op.show(op.operands[1]), op.show(op.operands[2])));
  SINTER_TRY(check_scores(op));
  return TensorType{dtype, scores.dims};
}

}  // namespace sinter
