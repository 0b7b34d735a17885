#include "ir/decompose.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "ir/common_subexpressions.h"

namespace sinter {
namespace {

/// Operands, attributes and the builder of one composite; a method per composite. No call that
/// appends an op stands beside another in one argument list: compilers differ in which comes first.
struct Decomposition {
  Builder& b;
  llvm::ArrayRef<ValueId> operands;
  const Attributes& attrs;
  std::string name;

  const TensorType& type(ValueId id) const { return b.type(id); }
  ValueId constant(double value) { return b.constant(value, DType::f32); }
  /// x of the operand in float32.
  ValueId wide(ValueId x) { return b.cast(x, DType::f32); }

  /// The value, an op of this decomposition, as the result: in `dtype`, with the composite's name.
  ValueId finish(ValueId value, DType dtype) {
    if (type(value).dtype != dtype) return b.cast(value, dtype, name);
    if (!name.empty()) b.graph()[value].name = name;
    return value;
  }
  ValueId finish(ValueId value) { return finish(value, type(operands[0]).dtype); }

  int64_t last_axis(ValueId x) const { return static_cast<int64_t>(type(x).rank()) - 1; }
  ValueId row(OpKind kind, ValueId x) { return b.reduce(kind, x, {last_axis(x)}); }

  /// x sigmoid(x).
  ValueId silu() {
    const ValueId x = wide(operands[0]);
    return finish(b.mul(x, b.sigmoid(x)));
  }

  /// 0.5 x (1 + t).
  ValueId gelu_of(ValueId x, ValueId t) {
    const ValueId half = b.mul(constant(0.5), x);
    const ValueId factor = b.add(constant(1.0), t);
    return finish(b.mul(half, factor));
  }

  ValueId gelu() {
    const ValueId x = wide(operands[0]);
    return gelu_of(x, b.erf(b.mul(x, constant(std::numbers::sqrt2 / 2))));
  }

  /// t = tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
  ValueId gelu_tanh() {
    const ValueId x = wide(operands[0]);
    const ValueId cube = b.mul(b.mul(x, x), x);
    const ValueId inner = b.add(x, b.mul(constant(0.044715), cube));
    const double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    return gelu_of(x, b.tanh(b.mul(constant(factor), inner)));
  }

  /// x sigmoid(1.702 x).
  ValueId quick_gelu() {
    const ValueId x = wide(operands[0]);
    return finish(b.mul(x, b.sigmoid(b.mul(constant(1.702), x))));
  }

  ValueId relu() {
    const ValueId x = wide(operands[0]);
    return finish(b.maximum(x, constant(0.0)));
  }

  /// The sum of each row divided by its length, a constant.
  ValueId mean(ValueId x) {
    const double length = static_cast<double>(type(x).dims.back().constant());
    const ValueId sum = row(OpKind::reduce_sum, x);
    return b.div(sum, constant(length));
  }

  ValueId inverse_deviation(ValueId squares) {
    const ValueId variance = mean(squares);
    return b.rsqrt(b.add(variance, constant(attrs.get<double>(AttrName::eps))));
  }

  /// All in float32, rounded once.
  ValueId layer_norm() {
    const ValueId x = wide(operands[0]);
    const ValueId centered = b.sub(x, mean(x));
    const ValueId scale = inverse_deviation(b.mul(centered, centered));
    const ValueId normal = b.mul(centered, scale);
    ValueId result = b.mul(normal, wide(operands[1]));
    if (operands.size() == 3) result = b.add(result, wide(operands[2]));
    return finish(result);
  }

  /// Rounded before the weight is applied, as the models' own code does.
  ValueId rms_norm() {
    const ValueId x = wide(operands[0]);
    const ValueId normal = b.mul(x, inverse_deviation(b.mul(x, x)));
    return finish(b.mul(b.cast(normal, type(operands[0]).dtype), operands[1]));
  }

  ValueId softmax_of(ValueId x, DType dtype) {
    // No x is above the maximum.
    const ValueId e = b.exp_neg_abs(b.sub(x, row(OpKind::reduce_max, x)));
    // One division a row: it costs as much as ten multiplications.
    return finish(b.mul(e, b.div(constant(1), row(OpKind::reduce_sum, e))), dtype);
  }

  ValueId softmax() { return softmax_of(wide(operands[0]), type(operands[0]).dtype); }

  /// Keys that a token does not see have score -inf, so probability 0.
  ValueId attention_softmax() {
    const Dims dims = type(operands[0]).dims;
    const size_t rank = dims.size();
    Dims per_token(rank, Dim(1)), per_key(rank, Dim(1));
    per_token[rank - 2] = dims[rank - 2];
    per_key[rank - 1] = dims[rank - 1];
    const ValueId first = b.reshape(operands[1], per_token);
    const ValueId slot = b.reshape(operands[2], per_token);
    const ValueId key = b.op(OpKind::iota, {},
                             Attributes()
                                 .set(AttrName::axis, static_cast<int64_t>(rank) - 1)
                                 .set(AttrName::dims, per_key));
    const ValueId from_first = b.less_equal(first, key);
    const ValueId to_slot = b.less_equal(key, slot);
    ValueId seen = b.logical_and(from_first, to_slot);
    const AttrValue* window = attrs.find(AttrName::window);
    if (window != nullptr && std::get<int64_t>(*window) <= std::numeric_limits<int32_t>::max()) {
      const double keys = static_cast<double>(std::get<int64_t>(*window));
      const ValueId before = b.sub(slot, b.constant(keys, DType::i32));
      seen = b.logical_and(seen, b.less(before, key));
    }
    ValueId scores = b.mul(operands[0], constant(attrs.get<double>(AttrName::scale)));
    if (const AttrValue* softcap = attrs.find(AttrName::softcap)) {
      const ValueId cap = constant(std::get<double>(*softcap));
      scores = b.mul(b.tanh(b.div(scores, cap)), cap);
    }
    const ValueId minus_infinity = constant(-std::numeric_limits<double>::infinity());
    return softmax_of(b.op(OpKind::where, {seen, scores, minus_infinity}),
                      attrs.get<DType>(AttrName::dtype));
  }

  ValueId concat(llvm::ArrayRef<ValueId> parts, int64_t axis) {
    if (parts.size() == 1) return parts[0];
    return b.op(OpKind::concat, parts, Attributes().set(AttrName::axis, axis));
  }

  /// In the element type, a rounding per primitive. The pairs stand along `axis` of x, once as the
  /// two halves of axis 2, once as an inner axis 3.
  ValueId rope() {
    const ValueId x = operands[0];
    const Dims dims = type(x).dims;
    const int64_t width = dims[2].constant();
    const int64_t rotary = attrs.get<int64_t>(AttrName::rotary);
    const bool interleaved = attrs.get<std::string>(AttrName::pairing) == "interleaved";
    const int64_t axis = interleaved ? 3 : 2, extent = interleaved ? 1 : rotary / 2;

    ValueId pairs = rotary == width ? x : b.slice(x, 2, 0, rotary);
    Dims angles = {dims[0], 1, rotary / 2};
    if (interleaved) {
      pairs = b.reshape(pairs, {dims[0], dims[1], rotary / 2, 2});
      angles.push_back(1);
    }
    const ValueId cos = b.reshape(operands[1], angles), sin = b.reshape(operands[2], angles);
    const ValueId x1 = b.slice(pairs, axis, 0, extent), x2 = b.slice(pairs, axis, extent, extent);
    const ValueId x1_cos = b.mul(x1, cos), x2_sin = b.mul(x2, sin);
    const ValueId y1 = b.sub(x1_cos, x2_sin);
    const ValueId x2_cos = b.mul(x2, cos), x1_sin = b.mul(x1, sin);
    const ValueId y2 = b.add(x2_cos, x1_sin);
    llvm::SmallVector<ValueId, 3> parts = {y1, y2};
    if (interleaved) parts = {b.reshape(concat(parts, 3), {dims[0], dims[1], rotary})};
    if (rotary != width) parts.push_back(b.slice(x, 2, rotary, width - rotary));
    return finish(concat(parts, 2));
  }
};

}  // namespace

ValueId decompose(Builder& builder, OpKind kind, llvm::ArrayRef<ValueId> operands,
                  const Attributes& attrs, std::string name) {
  Decomposition d{builder, operands, attrs, std::move(name)};
  switch (kind) {
    case OpKind::silu:
      return d.silu();
    case OpKind::gelu:
      return d.gelu();
    case OpKind::gelu_tanh:
      return d.gelu_tanh();
    case OpKind::quick_gelu:
      return d.quick_gelu();
    case OpKind::relu:
      return d.relu();
    case OpKind::layer_norm:
      return d.layer_norm();
    case OpKind::rms_norm:
      return d.rms_norm();
    case OpKind::softmax:
      return d.softmax();
    case OpKind::attention_softmax:
      return d.attention_softmax();
    case OpKind::rope:
      return d.rope();
    default:
      SINTER_CHECK(false, "{} is no composite", op_info(kind).name);
  }
}

Graph decompose_all(const Graph& graph, llvm::ArrayRef<Symbol> symbols) {
  // Fresh names are a prefix that no name of the graph starts with, and a number.
  std::string prefix = "t";
  const auto is_fresh = [&](std::string_view name) { return name.starts_with(prefix); };
  while (llvm::any_of(graph.ops(), [&](const Op& op) { return is_fresh(op.name); })) prefix += "_";

  Graph result;
  Builder builder(result, symbols, prefix);
  std::vector<ValueId> replacement(graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i) {
    Op op = graph.ops()[i];
    for (ValueId& operand : op.operands) operand = replacement[operand.index];
    replacement[i] = op_class(op) == OpClass::composite
                         ? decompose(builder, op.kind, op.operands, op.attrs, op.name)
                         : result.add(std::move(op));
  }
  for (ValueId id : graph.inputs) result.inputs.push_back(replacement[id.index]);
  for (ValueId id : graph.outputs) result.outputs.push_back(replacement[id.index]);
  merge_common_subexpressions(result, is_fresh);
  remove_dead_ops(result);
  return result;
}

}  // namespace sinter
