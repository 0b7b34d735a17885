// attention over a cache, and the part of it between its two products.
#include <llvm/ADT/STLExtras.h>

#include <cmath>
#include <limits>

#include "ir/attention_heads.h"
#include "ir/inference.h"

namespace sinter {
namespace {

constexpr size_t kMask = 5;            // operand
constexpr size_t kMaxOperandAxes = 8;  // of an attention's operands; scores have two more

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
  if (op.attrs.has(AttrName::dropout)) {
    const double dropout = op.attrs.get<double>(AttrName::dropout);
    if (!(dropout > 0 && dropout < 1))
      return op.reject(18, fmt::format("dropout is {}, must be > 0 and < 1", dropout));
  }
  const int64_t sink = attention_sink(op.attrs);
  if (sink < 0 || sink > std::numeric_limits<int32_t>::max())
    return op.reject(
        18, fmt::format("sink is {}, must be 0 .. {}", sink, std::numeric_limits<int32_t>::max()));
  return {};
}

/// Behind the operand `last`, the mask or its summary, stands the seed of a dropout alone.
Status check_last_operand(const Inference& op, size_t last) {
  const size_t count = operands_before_seed(op.attrs, op.operands.size());
  if (count <= last + 1) return {};
  return op.reject(1, fmt::format("takes at most {} operands without a dropout, got {}", last + 1,
                                  op.operands.size()));
}

/// Each extent of `from` is 1 or equals the extent of `to` on the same axis, with last axes
/// aligned.
bool repeats_to(DimsRef from, DimsRef to) {
  if (from.size() > to.size()) return false;
  return llvm::all_of(llvm::zip(from, to.take_back(from.size())), [](const auto& pair) {
    return std::get<0>(pair).is(1) || std::get<0>(pair) == std::get<1>(pair);
  });
}

bool is_mask(const TensorType& mask, DimsRef scores) {
  return (mask.dtype == DType::i1 || is_float(mask.dtype)) && repeats_to(mask.dims, scores);
}

/// q [..., N, heads*hd], keys [..., R, kv_heads*hd] and values [..., R, kv_heads*vd] fit together;
/// then the elements of a row of the result.
std::optional<int64_t> result_width(const TensorType& q, const TensorType& keys,
                                    const TensorType& values, int64_t heads, int64_t kv_heads) {
  const size_t rank = q.rank();
  if (rank < 2 || rank > kMaxOperandAxes || keys.rank() != rank || values.rank() != rank ||
      !is_float(q.dtype) || keys.dtype != q.dtype || values.dtype != q.dtype)
    return std::nullopt;
  const auto batch = [&](const TensorType& type) { return DimsRef(type.dims).drop_back(2); };
  if (batch(keys) != batch(q) || batch(values) != batch(q) ||
      keys.dims[rank - 2] != values.dims[rank - 2])
    return std::nullopt;
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || !q.dims.back().is_constant() ||
      !keys.dims.back().is_constant() || !values.dims.back().is_constant())
    return std::nullopt;
  const int64_t width = q.dims.back().constant(), key_width = keys.dims.back().constant();
  const int64_t value_width = values.dims.back().constant();
  int64_t result = 0;
  if (width % heads != 0 || key_width % kv_heads != 0 || value_width % kv_heads != 0 ||
      width / heads != key_width / kv_heads ||
      __builtin_mul_overflow(value_width / kv_heads, heads, &result))
    return std::nullopt;
  return result;
}

}  // namespace

Result<TensorType> infer_attention(const Inference& op) {
  SINTER_TRY(
      check_last_operand(op, order_of(op.attrs) == Order::tiled_attention ? kMask + 1 : kMask));
  const TensorType &q = op.operands[0], &keys = op.operands[1], &values = op.operands[2];
  const int64_t heads = op.attrs.get<int64_t>(AttrName::heads);
  const int64_t kv_heads = op.attrs.get<int64_t>(AttrName::kv_heads);
  const std::optional<int64_t> width = result_width(q, keys, values, heads, kv_heads);
  const auto tokens = [&] { return TensorType{DType::i32, Dims(DimsRef(q.dims).drop_back())}; };
  if (!width || op.operands[3] != tokens() || op.operands[4] != op.operands[3])
    return op.reject(
        18, fmt::format("q {}, keys {}, values {}, first {}, slot {}, {} heads, {} kv_heads",
                        op.show(q), op.show(keys), op.show(values), op.show(op.operands[3]),
                        op.show(op.operands[4]), heads, kv_heads));
  const TensorType seed{DType::i32, {}};
  if (op.attrs.has(AttrName::dropout) &&
      (op.operands.size() == kMask || op.operands.back() != seed))
    return op.reject(18, fmt::format("the last operand {} is no seed i32[] of the dropout",
                                     op.show(op.operands.back())));
  if (operands_before_seed(op.attrs, op.operands.size()) > kMask) {
    const TensorType& mask = op.operands[kMask];
    if (mask.rank() != q.rank() + 1 || !is_mask(mask, attention_score_dims(q, keys, heads)))
      return op.reject(18,
                       fmt::format("mask {}, scores {}", op.show(mask),
                                   op.show({DType::f32, attention_score_dims(q, keys, heads)})));
  }
  SINTER_TRY(check_scores(op));
  Dims dims = q.dims;
  dims.back() = Dim(*width);
  return TensorType{q.dtype, dims};
}

Result<TensorType> infer_own_attention(const Inference& op, size_t mask) {
  llvm::SmallVector<TensorType, 6> operands(op.operands.take_front(kMask));
  SINTER_TRY(check_last_operand(op, mask));
  if (operands_before_seed(op.attrs, op.operands.size()) > mask)
    operands.push_back(op.operands[mask]);
  if (op.attrs.has(AttrName::dropout)) operands.push_back(op.operands.back());
  return infer_attention({op.kind, operands, op.attrs, op.symbols});
}

Result<TensorType> infer_attention_softmax(const Inference& op) {
  const TensorType &scores = op.operands[0], &first = op.operands[1];
  const DType dtype = op.attrs.get<DType>(AttrName::dtype);
  const bool fits = scores.rank() >= 2 && scores.dtype == DType::f32 && is_float(dtype) &&
                    first.dtype == DType::i32 && first.rank() >= 1 &&
                    first.dims.back() == scores.dims[scores.rank() - 2] &&
                    repeats_to(first.dims, DimsRef(scores.dims).drop_back()) &&
                    op.operands[2] == first;
  if (!fits)
    return op.reject(18, fmt::format("scores {}, first {}, slot {}", op.show(scores),
                                     op.show(first), op.show(op.operands[2])));
  if (op.operands.size() == 4 && !is_mask(op.operands[3], scores.dims))
    return op.reject(18,
                     fmt::format("mask {}, scores {}", op.show(op.operands[3]), op.show(scores)));
  SINTER_TRY(check_scores(op));
  return TensorType{dtype, scores.dims};
}

}  // namespace sinter
