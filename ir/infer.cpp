// All constraints stand in this one file, beside their list.
// Constraints, by number; the number stands in the error.
//   C1   operand count, and attributes that are required and known
//   C2   elementwise: dims broadcast (NumPy)
//   C3   elementwise: operands of one element type that the op's domain allows
//   C4   reshape: the number of elements stays, for all values of the symbols
//   C5   transpose: axes are a permutation
//   C6   slice: 0 <= begin, begin + size <= extent; a symbolic size has begin 0 and is the extent
//   or
//        at most it
//   C7   broadcast: the operand's dims broadcast to `dims`
//   C8   axis in 0 .. rank-1; axes ascending and distinct
//   C9   cast: a conversion that exists
//   C10  concat: operands differ in nothing but a constant extent along `axis`
//   C11  embedding: table [V, D], ids i32 of rank 1
//   C12  kv_append: state [R, ...], value [N, ...] of the same type but for N, slot i32 [N]
//   C13  reduce, norm, softmax: float operands of rank >= 1
//   C14  norm: weight and bias [D] of the operand's element type, D a constant >= 1
//   C15  rope: x [N, H, hd], cos and sin [N, rotary/2] of one float type; rotary even, 2 .. hd
//   C16  linear: x [..., K], w [M, K], bias [M], one float type, K and M constants; matvec: x of
//        rank 2 and at most 8 rows, M and K >= 1, K a multiple of 8, splits a power of two, a
//        result of the operands' type or f32
//   C17  einsum: a spec of the form "ab,bc->ac", extents that agree, one float type
//   C18  attention: the shapes that ops.def lists; kv_heads divides heads; scale finite;
//        softcap > 0, finite; window >= 1
//   C19  dims, literal elements and constants: dims are sizes, one value per element; eps > 0
//   C20  the number of elements fits 63 bits for all values of the symbols
//   C21  attention_few, sample: the shapes and bounds that ops.def, attention_order.h and
//   sampling.h list
#include "ir/infer.h"

#include <cmath>
#include <set>

#include "ir/attention_order.h"
#include "ir/matvec_order.h"
#include "ir/reduction_order.h"
#include "ir/sampling.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

struct Inference {
  OpKind kind;
  llvm::ArrayRef<TensorType> operands;
  const Attributes& attrs;
  llvm::ArrayRef<Symbol> symbols;

  tl::unexpected<Error> reject(int constraint, std::string what) const {
    return fail(fmt::format("{}: {} (C{})", op_info(kind).name, what, constraint));
  }
  std::string show(const TensorType& type) const { return to_string(type, symbols); }
  std::string show(DimsRef dims) const {
    return to_string(TensorType{DType::f32, Dims(dims)}, symbols).substr(3);
  }

  Status check_counts() const;
  Status check_axis(int64_t axis, size_t rank) const;
  Status check_axes(llvm::ArrayRef<int64_t> axes, size_t rank) const;
  Result<TensorType> infer() const;
  Result<TensorType> elementwise() const;
  Result<TensorType> where() const;
  Result<TensorType> view() const;
  Result<TensorType> slice() const;
  Result<TensorType> generator() const;
  Result<TensorType> cast() const;
  Result<TensorType> concat() const;
  Result<TensorType> embedding() const;
  Result<TensorType> append() const;
  Result<TensorType> reduce() const;
  Result<TensorType> composite() const;
  Result<TensorType> rope() const;
  Result<TensorType> linear() const;
  Result<TensorType> matvec() const;
  Result<TensorType> einsum() const;
  Status check_scores() const;
  Result<TensorType> attention_softmax() const;
  Result<TensorType> attention() const;
  Result<TensorType> attention_few() const;
  Result<TensorType> sample() const;
};

Status Inference::check_counts() const {
  const OpInfo& info = op_info(kind);
  const int count = static_cast<int>(operands.size());
  if (count < info.least_operands || count > info.most_operands)
    return reject(1, info.least_operands == info.most_operands
                         ? fmt::format("takes {} operands, got {}", info.least_operands, count)
                         : fmt::format("takes {} to {} operands, got {}", info.least_operands,
                                       info.most_operands, count));
  for (AttrName name : info.required)
    if (!attrs.has(name)) return reject(1, fmt::format("attribute {} is missing", to_string(name)));
  for (const auto& [name, value] : attrs)
    if (!llvm::is_contained(info.required, name) && !llvm::is_contained(info.optional, name))
      return reject(1, fmt::format("has no attribute {}", to_string(name)));
  return {};
}

Status Inference::check_axis(int64_t axis, size_t rank) const {
  if (axis < 0 || axis >= static_cast<int64_t>(rank))
    return reject(8, fmt::format("axis {} of an operand of rank {}", axis, rank));
  return {};
}

Status Inference::check_axes(llvm::ArrayRef<int64_t> axes, size_t rank) const {
  for (size_t i = 0; i < axes.size(); ++i) {
    SINTER_TRY(check_axis(axes[i], rank));
    if (i > 0 && axes[i] <= axes[i - 1])
      return reject(8, fmt::format("axes must ascend, got {} after {}", axes[i], axes[i - 1]));
  }
  return {};
}

Result<TensorType> Inference::elementwise() const {
  const OpInfo& info = op_info(kind);
  Dims dims = operands[0].dims;
  for (const TensorType& operand : operands) {
    if (operand.dtype != operands[0].dtype)
      return reject(3, fmt::format("operands of types {} and {}; cast one",
                                   to_string(operands[0].dtype), to_string(operand.dtype)));
    const auto common = broadcast_dims(dims, operand.dims);
    if (!common)
      return reject(
          2, fmt::format("shapes {} and {} do not broadcast", show(dims), show(operand.dims)));
    dims = *common;
  }
  const DType dtype = operands[0].dtype;
  const bool allowed = info.domain == OpInfo::Domain::truth ? dtype == DType::i1
                       : info.domain == OpInfo::Domain::number
                           ? is_float(dtype) || dtype == DType::i32
                           : is_float(dtype);
  if (!allowed) return reject(3, fmt::format("not defined for {}", to_string(dtype)));
  return TensorType{info.result == OpInfo::Result::truth ? DType::i1 : dtype, dims};
}

Result<TensorType> Inference::where() const {
  if (operands[0].dtype != DType::i1 || operands[1].dtype != operands[2].dtype)
    return reject(3, fmt::format("needs i1 and two operands of one type, got {}, {}, {}",
                                 to_string(operands[0].dtype), to_string(operands[1].dtype),
                                 to_string(operands[2].dtype)));
  auto dims = broadcast_dims(operands[0].dims, operands[1].dims);
  if (dims) dims = broadcast_dims(*dims, operands[2].dims);
  if (!dims)
    return reject(2, fmt::format("shapes {}, {} and {} do not broadcast", show(operands[0].dims),
                                 show(operands[1].dims), show(operands[2].dims)));
  return TensorType{operands[1].dtype, *dims};
}

Result<TensorType> Inference::slice() const {
  const TensorType& x = operands[0];
  const int64_t axis = attrs.get<int64_t>(AttrName::axis);
  const int64_t begin = attrs.get<int64_t>(AttrName::begin);
  const Dim size = attrs.get<Dim>(AttrName::size);
  SINTER_TRY(check_axis(axis, x.rank()));
  const Dim extent = x.dims[axis];
  int64_t end = 0;
  bool inside = begin >= 0;
  if (size.is_constant()) {
    const int64_t least =
        extent.is_constant() ? extent.constant() : symbols[extent.symbol().index].low;
    inside &= !__builtin_add_overflow(begin, size.constant(), &end) && end <= least;
  } else {
    const bool known = !extent.is_constant() &&
                       (size == extent || symbols[size.symbol().index].at_most == extent.symbol());
    inside &= begin == 0 && known;
  }
  if (!inside)
    return reject(6, fmt::format("elements {} to {} + {} of an extent of {}", begin, begin,
                                 to_string(size, symbols), to_string(extent, symbols)));
  TensorType result = x;
  result.dims[axis] = size;
  return result;
}

Result<TensorType> Inference::view() const {
  const TensorType& x = operands[0];
  if (kind == OpKind::slice) return slice();
  if (kind == OpKind::transpose) {
    const auto& axes = attrs.get<std::vector<int64_t>>(AttrName::axes);
    const std::set<int64_t> distinct(axes.begin(), axes.end());
    if (axes.size() != x.rank() || distinct.size() != axes.size() ||
        (!axes.empty() &&
         (*distinct.begin() != 0 || *distinct.rbegin() != static_cast<int64_t>(axes.size()) - 1)))
      return reject(5, fmt::format("axes [{}] are not a permutation of {} axes",
                                   fmt::join(axes, ", "), x.rank()));
    TensorType result{x.dtype, {}};
    for (int64_t axis : axes) result.dims.push_back(x.dims[axis]);
    return result;
  }
  const Dims& dims = attrs.get<Dims>(AttrName::dims);
  if (kind == OpKind::reshape) {
    const SymExpr before = volume(x.dims), after = volume(dims);
    if (before != after || after.overflowed())
      return reject(4, fmt::format("{} elements in {} become {} in {}", to_string(before, symbols),
                                   show(x.dims), to_string(after, symbols), show(dims)));
  } else {
    const auto common = broadcast_dims(x.dims, dims);
    if (!common || *common != dims)
      return reject(7, fmt::format("{} does not broadcast to {}", show(x.dims), show(dims)));
  }
  return TensorType{x.dtype, dims};
}

Result<TensorType> Inference::generator() const {
  const Dims& dims = attrs.get<Dims>(AttrName::dims);
  if (kind == OpKind::iota) {
    SINTER_TRY(check_axis(attrs.get<int64_t>(AttrName::axis), dims.size()));
    return TensorType{DType::i32, dims};
  }
  const TensorType type{attrs.get<DType>(AttrName::dtype), dims};
  if (kind == OpKind::literal) {
    const auto& values = attrs.get<std::vector<double>>(AttrName::values);
    const SymExpr count = volume(dims);
    if (!count.is_constant() || count.constant() != static_cast<int64_t>(values.size()))
      return reject(19, fmt::format("{} values for {}", values.size(), show(dims)));
  }
  return type;
}

Result<TensorType> Inference::cast() const {
  const DType from = operands[0].dtype, to = attrs.get<DType>(AttrName::dtype);
  const bool exists = from == to || is_float(to) || (to == DType::i32 && from == DType::i1);
  if (!exists)
    return reject(9, fmt::format("no conversion from {} to {}", to_string(from), to_string(to)));
  return TensorType{to, operands[0].dims};
}

Result<TensorType> Inference::concat() const {
  TensorType result = operands[0];
  const int64_t axis = attrs.get<int64_t>(AttrName::axis);
  SINTER_TRY(check_axis(axis, result.rank()));
  int64_t extent = 0;
  for (const TensorType& operand : operands) {
    TensorType aligned = operand;
    if (operand.rank() == result.rank()) aligned.dims[axis] = result.dims[axis];
    if (aligned != result || !operand.dims[axis].is_constant() ||
        __builtin_add_overflow(extent, operand.dims[axis].constant(), &extent))
      return reject(10,
                    fmt::format("{} and {} along axis {}", show(operands[0]), show(operand), axis));
  }
  result.dims[axis] = extent;
  return result;
}

Result<TensorType> Inference::embedding() const {
  const TensorType &table = operands[0], &ids = operands[1];
  if (table.rank() != 2 || ids.rank() != 1 || ids.dtype != DType::i32)
    return reject(11, fmt::format("needs a table [V, D] and ids i32[N], got {} and {}", show(table),
                                  show(ids)));
  return TensorType{table.dtype, {ids.dims[0], table.dims[1]}};
}

Result<TensorType> Inference::append() const {
  const TensorType &state = operands[0], &value = operands[1], &slot = operands[2];
  const bool fits = state.rank() >= 1 && value.rank() == state.rank() &&
                    value.dtype == state.dtype &&
                    DimsRef(state.dims).drop_front() == DimsRef(value.dims).drop_front() &&
                    slot == TensorType{DType::i32, {value.dims[0]}};
  if (!fits)
    return reject(12,
                  fmt::format("state {}, value {}, slot {}", show(state), show(value), show(slot)));
  return state;
}

Result<TensorType> Inference::reduce() const {
  TensorType result = operands[0];
  if (!is_float(result.dtype) || result.rank() == 0)
    return reject(13, fmt::format("needs a float operand of rank >= 1, got {}", show(result)));
  const auto& axes = attrs.get<std::vector<int64_t>>(AttrName::axes);
  SINTER_TRY(check_axes(axes, result.rank()));
  if (axes.empty()) return reject(8, "axes is empty; name the axes to reduce");
  for (int64_t axis : axes) result.dims[axis] = 1;
  return result;
}

Result<TensorType> Inference::rope() const {
  const TensorType &x = operands[0], &cos = operands[1], &sin = operands[2];
  const int64_t rotary = attrs.get<int64_t>(AttrName::rotary);
  const auto& pairing = attrs.get<std::string>(AttrName::pairing);
  const bool fits = x.rank() == 3 && is_float(x.dtype) && x.dims[2].is_constant() && rotary >= 2 &&
                    rotary % 2 == 0 && rotary <= x.dims[2].constant() && cos == sin &&
                    cos == TensorType{x.dtype, {x.dims[0], rotary / 2}} &&
                    (pairing == "half" || pairing == "interleaved");
  if (!fits)
    return reject(15, fmt::format("x {}, cos {}, sin {}, rotary {}, pairing \"{}\"", show(x),
                                  show(cos), show(sin), rotary, printable(pairing)));
  return x;
}

Result<TensorType> Inference::composite() const {
  const TensorType& x = operands[0];
  if (kind == OpKind::rope) return rope();
  if (kind == OpKind::attention_softmax) return attention_softmax();
  if (!is_float(x.dtype)) return reject(3, fmt::format("not defined for {}", to_string(x.dtype)));
  if (kind != OpKind::layer_norm && kind != OpKind::rms_norm && kind != OpKind::softmax) return x;
  if (x.rank() == 0) return reject(13, "needs an operand of rank >= 1, got a scalar");
  if (kind == OpKind::softmax) return x;
  const Dim width = x.dims.back();
  for (const TensorType& parameter : operands.drop_front())
    if (parameter != TensorType{x.dtype, {width}} || !width.is_constant() || width.is(0))
      return reject(14, fmt::format("x {} with parameter {}", show(x), show(parameter)));
  const double eps = attrs.get<double>(AttrName::eps);
  if (!(eps > 0) || !std::isfinite(eps))
    return reject(19, fmt::format("eps is {}, must be > 0", eps));
  return x;
}

Result<TensorType> Inference::linear() const {
  const TensorType &x = operands[0], &w = operands[1];
  const bool fits = x.rank() >= 1 && w.rank() == 2 && is_float(x.dtype) && w.dtype == x.dtype &&
                    x.dims.back() == w.dims[1] && w.dims[0].is_constant() &&
                    w.dims[1].is_constant() &&
                    (operands.size() == 2 || operands[2] == TensorType{x.dtype, {w.dims[0]}});
  if (!fits)
    return reject(16, fmt::format("x {}, w {}{}", show(x), show(w),
                                  operands.size() == 3 ? ", bias " + show(operands[2]) : ""));
  TensorType result = x;
  result.dims.back() = w.dims[0];
  return result;
}

Result<TensorType> Inference::matvec() const {
  const TensorType &x = operands[0], &w = operands[1];
  SINTER_LET(result, linear());
  const int64_t splits = attrs.get<int64_t>(AttrName::splits);
  if (splits < 1 || splits > kMostMatvecSplits || (splits & (splits - 1)) != 0)
    return reject(
        16, fmt::format("{} splits, must be a power of two, 1 to {}", splits, kMostMatvecSplits));
  if (x.rank() != 2 || w.dims[0].is(0) || w.dims[1].is(0) || w.dims[1].constant() % kChunk != 0)
    return reject(16, fmt::format("x {}, w {}: a matvec has rows of a multiple of 8 elements",
                                  show(x), show(w)));
  const int64_t tokens = SymExpr(x.dims[0]).upper_bound(symbols);
  if (tokens > kMostMatvecTokens)
    return reject(16, fmt::format("{} tokens, a matvec has at most {}", tokens, kMostMatvecTokens));
  if (!attrs.has(AttrName::dtype)) return result;
  result.dtype = attrs.get<DType>(AttrName::dtype);
  if (result.dtype != x.dtype && result.dtype != DType::f32)
    return reject(16, fmt::format("x {}, the result {}: a matvec gives its operands' type or f32",
                                  show(x), show(result)));
  return result;
}

Result<TensorType> Inference::einsum() const {
  const TensorType &a = operands[0], &b = operands[1];
  SINTER_LET(spec, parse_einsum(attrs.get<std::string>(AttrName::spec)));
  size_t a_rank = 0, b_rank = 0, rank = 0;
  for (const EinsumAxis& axis : spec.axes) {
    a_rank += axis.a >= 0;
    b_rank += axis.b >= 0;
    rank += axis.result >= 0;
  }
  if (a_rank != a.rank() || b_rank != b.rank() || a.dtype != b.dtype || !is_float(a.dtype))
    return reject(17, fmt::format("\"{}\" of {} and {}", attrs.get<std::string>(AttrName::spec),
                                  show(a), show(b)));
  TensorType result{a.dtype, Dims(rank)};
  if (attrs.has(AttrName::dtype)) result.dtype = attrs.get<DType>(AttrName::dtype);
  if (!is_float(result.dtype)) return reject(17, "the result must be of a float type");
  for (const EinsumAxis& axis : spec.axes) {
    const Dim extent = axis.a >= 0 ? a.dims[axis.a] : b.dims[axis.b];
    if (axis.b >= 0 && b.dims[axis.b] != extent)
      return reject(17,
                    fmt::format("axis '{}' is {} in one operand and {} in the other", axis.letter,
                                to_string(extent, symbols), to_string(b.dims[axis.b], symbols)));
    if (axis.result >= 0) result.dims[axis.result] = extent;
  }
  return result;
}

Status Inference::check_scores() const {
  const double scale = attrs.get<double>(AttrName::scale);
  if (!std::isfinite(scale)) return reject(18, fmt::format("scale is {}", scale));
  if (attrs.has(AttrName::softcap)) {
    const double softcap = attrs.get<double>(AttrName::softcap);
    if (!(softcap > 0) || !std::isfinite(softcap))
      return reject(18, fmt::format("softcap is {}, must be > 0 and finite", softcap));
  }
  if (attrs.has(AttrName::window) && attrs.get<int64_t>(AttrName::window) < 1)
    return reject(18,
                  fmt::format("window is {}, must be >= 1", attrs.get<int64_t>(AttrName::window)));
  return {};
}

Result<TensorType> Inference::attention_softmax() const {
  const TensorType& scores = operands[0];
  const DType dtype = attrs.get<DType>(AttrName::dtype);
  const bool fits = scores.rank() >= 2 && scores.dtype == DType::f32 && is_float(dtype) &&
                    operands[1] == TensorType{DType::i32, {scores.dims[scores.rank() - 2]}} &&
                    operands[2] == operands[1];
  if (!fits)
    return reject(18, fmt::format("scores {}, first {}, slot {}", show(scores), show(operands[1]),
                                  show(operands[2])));
  SINTER_TRY(check_scores());
  return TensorType{dtype, scores.dims};
}

Result<TensorType> Inference::attention() const {
  const TensorType &q = operands[0], &keys = operands[1], &values = operands[2];
  const int64_t heads = attrs.get<int64_t>(AttrName::heads);
  const int64_t kv_heads = attrs.get<int64_t>(AttrName::kv_heads);
  const auto shape_error = [&] {
    return reject(
        18, fmt::format("q {}, keys {}, values {}, first {}, slot {}, {} heads, {} kv_heads",
                        show(q), show(keys), show(values), show(operands[3]), show(operands[4]),
                        heads, kv_heads));
  };
  if (q.rank() != 2 || keys.rank() != 2 || values.rank() != 2 || !is_float(q.dtype) ||
      keys.dtype != q.dtype || values.dtype != q.dtype || keys.dims[0] != values.dims[0] ||
      heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || !q.dims[1].is_constant() ||
      !keys.dims[1].is_constant() || !values.dims[1].is_constant() ||
      operands[3] != TensorType{DType::i32, {q.dims[0]}} || operands[4] != operands[3])
    return shape_error();
  const int64_t width = q.dims[1].constant(), key_width = keys.dims[1].constant();
  const int64_t value_width = values.dims[1].constant();
  int64_t result_width = 0;
  if (width % heads != 0 || key_width % kv_heads != 0 || value_width % kv_heads != 0 ||
      width / heads != key_width / kv_heads ||
      __builtin_mul_overflow(value_width / kv_heads, heads, &result_width))
    return shape_error();
  SINTER_TRY(check_scores());
  return TensorType{q.dtype, {q.dims[0], result_width}};
}

Result<TensorType> Inference::attention_few() const {
  SINTER_LET(whole, attention());
  const int64_t heads = attrs.get<int64_t>(AttrName::heads),
                splits = attrs.get<int64_t>(AttrName::splits);
  if (splits < 1 || splits > kMostAttentionSplits)
    return reject(21, fmt::format("{} splits, must be 1 .. {}", splits, kMostAttentionSplits));
  const int64_t width = operands[0].dims[1].constant() / heads;
  const int64_t value_width = whole.dims[1].constant() / heads;
  if (!is_few_head_width(width) || !is_few_head_width(value_width))
    return reject(21, fmt::format("heads of {} and {} elements, must be 1 .. {}", width,
                                  value_width, kMostHeadWidth));
  return whole;
}

Result<TensorType> Inference::sample() const {
  const TensorType& logits = operands[0];
  bool fits = logits.rank() == 2 && is_float(logits.dtype) && logits.dims[1].is_constant() &&
              logits.dims[1].constant() >= 1 && logits.dims[1].constant() <= kMostSampled;
  constexpr DType kTypes[] = {DType::f32, DType::i32, DType::f32, DType::i32, DType::i32};
  for (size_t i = 0; fits && i < 5; ++i)
    fits = operands[i + 1] == TensorType{kTypes[i], {logits.dims[0]}};
  if (!fits)
    return reject(21, fmt::format("logits {}, temperature {}, top_k {}, top_p {}, seed {}, step {}",
                                  show(logits), show(operands[1]), show(operands[2]),
                                  show(operands[3]), show(operands[4]), show(operands[5])));
  return TensorType{DType::i32, {logits.dims[0]}};
}

Result<TensorType> Inference::infer() const {
  SINTER_TRY(check_counts());
  switch (op_info(kind).op_class) {
    case OpClass::leaf:
      return reject(1, "the type of a leaf is given, not inferred");
    case OpClass::generator:
      return generator();
    case OpClass::view:
      return view();
    case OpClass::elementwise:
      return elementwise();
    case OpClass::gather:
      return embedding();
    case OpClass::append:
      return append();
    case OpClass::reduce:
      return reduce();
    case OpClass::composite:
      return composite();
    case OpClass::contraction:
      return kind == OpKind::linear ? linear() : kind == OpKind::einsum ? einsum() : attention();
    case OpClass::anchor:
      return matvec();
    case OpClass::opaque:
      return kind == OpKind::attention_few ? attention_few() : sample();
    case OpClass::pointwise:
      if (kind == OpKind::cast) return cast();
      if (kind == OpKind::concat) return concat();
      if (kind == OpKind::where) return where();
      return operands[0];  // copy
  }
  SINTER_CHECK(false, "op class");
}

}  // namespace

Result<TensorType> infer_type(OpKind kind, llvm::ArrayRef<TensorType> operands,
                              const Attributes& attrs, llvm::ArrayRef<Symbol> symbols) {
  const Inference inference{kind, operands, attrs, symbols};
  SINTER_LET(type, inference.infer());
  if (volume(type.dims).upper_bound(symbols) > INT64_MAX / size_bytes(type.dtype))
    return inference.reject(20, fmt::format("{} has more than 2^63 bytes", inference.show(type)));
  return type;
}

std::optional<Dims> broadcast_dims(DimsRef a, DimsRef b) {
  if (a.size() < b.size()) std::swap(a, b);
  Dims dims(a);
  const size_t lead = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    if (dims[lead + i] == b[i] || b[i].is(1)) continue;
    if (!dims[lead + i].is(1)) return std::nullopt;
    dims[lead + i] = b[i];
  }
  return dims;
}

Result<EinsumSpec> parse_einsum(std::string_view text) {
  const auto reject = [&](std::string_view why) {
    return fail(fmt::format("einsum: spec \"{}\": {} (C17)", printable(text), why));
  };
  EinsumSpec spec;
  int part = 0, position = 0;  // part 0: a, 1: b, 2: result
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',' && part == 0) {
      part = 1, position = 0;
    } else if (c == '-' && part == 1 && i + 1 < text.size() && text[i + 1] == '>') {
      part = 2, position = 0, ++i;
    } else if (c >= 'a' && c <= 'z') {
      auto at = llvm::find_if(spec.axes, [&](const EinsumAxis& axis) { return axis.letter == c; });
      if (at == spec.axes.end()) at = spec.axes.insert(spec.axes.end(), EinsumAxis{c, -1, -1, -1});
      int& slot = part == 0 ? at->a : part == 1 ? at->b : at->result;
      if (slot >= 0) return reject(fmt::format("'{}' stands twice in one place", c));
      slot = position++;
    } else {
      return reject(fmt::format("unexpected character at {}", i));
    }
  }
  if (part != 2) return reject("it is not of the form \"ab,bc->ac\"");
  for (const EinsumAxis& axis : spec.axes)
    if ((axis.a >= 0) + (axis.b >= 0) + (axis.result >= 0) < 2)
      return reject(fmt::format("'{}' stands in one place only", axis.letter));
  return spec;
}

}  // namespace sinter
