// Reductions, and the composites of one operand and its parameters: activations, softmax, norms,
// rope.
#include <cmath>

#include "ir/inference.h"

namespace sinter {
namespace {

/// The named axes become 1.
Result<TensorType> reduced(const Inference& op) {
  TensorType result = op.operands[0];
  if ((!is_float(result.dtype) && result.dtype != DType::i32) || result.rank() == 0)
    return op.reject(
        13, fmt::format("needs a float or i32 operand of rank >= 1, got {}", op.show(result)));
  const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  SINTER_TRY(op.check_axes(axes, result.rank()));
  if (axes.empty()) return op.reject(8, "axes is empty; name the axes to reduce");
  for (int64_t axis : axes) result.dims[axis] = 1;
  return result;
}

/// The type of the first operand, which is a float type.
Result<TensorType> real(const Inference& op) {
  const TensorType& x = op.operands[0];
  if (!is_float(x.dtype))
    return op.reject(3, fmt::format("not defined for {}", to_string(x.dtype)));
  return x;
}

/// The same, with a last axis.
Result<TensorType> real_rows(const Inference& op) {
  SINTER_LET(x, real(op));
  if (x.rank() == 0) return op.reject(13, "needs an operand of rank >= 1, got a scalar");
  return x;
}

/// The parameters are as long as a row.
Result<TensorType> norm(const Inference& op) {
  SINTER_LET(x, real_rows(op));
  const Dim width = x.dims.back();
  for (const TensorType& parameter : op.operands.drop_front())
    if (parameter != TensorType{x.dtype, {width}} || !width.is_constant() || width.is(0))
      return op.reject(14, fmt::format("x {} with parameter {}", op.show(x), op.show(parameter)));
  const double eps = op.attrs.get<double>(AttrName::eps);
  if (!(eps > 0) || !std::isfinite(eps))
    return op.reject(19, fmt::format("eps is {}, must be > 0", eps));
  return x;
}

}  // namespace

Result<TensorType> infer_reduce_sum(const Inference& op) { return reduced(op); }
Result<TensorType> infer_reduce_max(const Inference& op) { return reduced(op); }

Result<TensorType> infer_silu(const Inference& op) { return real(op); }
Result<TensorType> infer_gelu(const Inference& op) { return real(op); }
Result<TensorType> infer_gelu_tanh(const Inference& op) { return real(op); }
Result<TensorType> infer_quick_gelu(const Inference& op) { return real(op); }
Result<TensorType> infer_relu(const Inference& op) { return real(op); }

Result<TensorType> infer_softmax(const Inference& op) { return real_rows(op); }
Result<TensorType> infer_rms_norm(const Inference& op) { return norm(op); }
Result<TensorType> infer_layer_norm(const Inference& op) { return norm(op); }

Result<TensorType> infer_rope(const Inference& op) {
  const TensorType &x = op.operands[0], &cos = op.operands[1], &sin = op.operands[2];
  const int64_t rotary = op.attrs.get<int64_t>(AttrName::rotary);
  const auto& pairing = op.attrs.get<std::string>(AttrName::pairing);
  const bool fits = x.rank() == 3 && is_float(x.dtype) && x.dims[2].is_constant() && rotary >= 2 &&
                    rotary % 2 == 0 && rotary <= x.dims[2].constant() && cos == sin &&
                    cos == TensorType{x.dtype, {x.dims[0], rotary / 2}} &&
                    (pairing == "half" || pairing == "interleaved");
  if (!fits)
    return op.reject(15, fmt::format("x {}, cos {}, sin {}, rotary {}, pairing \"{}\"", op.show(x),
                                     op.show(cos), op.show(sin), rotary, printable(pairing)));
  return x;
}

}  // namespace sinter
