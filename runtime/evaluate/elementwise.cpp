// Elementwise ops: the formulas of ops.def, expanded over float, int32 and truth values with the
// functions of scalar_math.h, and over double for precise evaluation. Blocks of elements are
// widened, computed and rounded in turn, so that they stay in the first-level cache.
#include <algorithm>
#include <cmath>

#include "ir/scalar_math.h"
#include "runtime/evaluate/ops.h"
#include "runtime/evaluate/precise_math.h"
#include "runtime/evaluate/vector_clones.h"

// add -> add_formula(a, b), where only the functions that formulas name are visible.
#define SINTER_DEFINE_FORMULA(name, formula)                                                      \
  template <typename T>                                                                           \
  [[gnu::always_inline]] inline auto name##_formula([[maybe_unused]] T a, [[maybe_unused]] T b) { \
    return formula;                                                                               \
  }
namespace sinter::math {
#define SINTER_ELEMENTWISE(name, operands, result, domain, formula, ...) \
  SINTER_DEFINE_FORMULA(name, formula)
#include "ir/ops.def"
}  // namespace sinter::math
namespace sinter::precise {
#define SINTER_ELEMENTWISE(name, operands, result, domain, formula, ...) \
  SINTER_DEFINE_FORMULA(name, formula)
#include "ir/ops.def"
}  // namespace sinter::precise

namespace sinter {
namespace {

constexpr int64_t kBlock = 512;  // elements

/// Memory holds truth values as bytes.
template <typename T>
using Element = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

/// result = block(a, b), a block of elements at a time, of the broadcast operands (unary: b = a).
template <int kOperands, typename T, typename Out, typename Block>
Result<HostView> apply_blocks(const OpCall& call, Block block) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  HostReader a_reader(broadcast_view(call.operands[0], call.dims));
  HostReader b_reader(broadcast_view(call.operands[kOperands - 1], call.dims));
  Element<T> a_scratch[kBlock], b_scratch[kBlock];
  Out results[kBlock];
  const int64_t total = value.view.volume(), bytes = whole_bytes(call.storage);
  for (int64_t start = 0; start < total; start += kBlock) {
    const int64_t count = std::min(kBlock, total - start);
    const Element<T>* a = a_reader.next(count, a_scratch);
    const Element<T>* b = kOperands == 1 ? a : b_reader.next(count, b_scratch);
    block(a, b, results, count);
    store_run(results, count, call.storage, value.out + start * bytes);
  }
  return value.view;
}

/// result = function(a, b) per element.
template <int kOperands, typename T, typename Function>
Result<HostView> apply(const OpCall& call, Function function) {
  using Out = Element<decltype(function(T{}, T{}))>;
  return apply_blocks<kOperands, T, Out>(
      call, [=](const Element<T>* a, const Element<T>* b, Out* out, int64_t count) {
        for (int64_t i = 0; i < count; ++i)
          out[i] = static_cast<Out>(function(static_cast<T>(a[i]), static_cast<T>(b[i])));
      });
}

template <int kOperands, typename Function>
Result<HostView> apply_integers(const OpCall& call, Function function) {
  return call.operand_type(0).dtype == DType::i32 ? apply<kOperands, int32_t>(call, function)
                                                  : apply<kOperands, int64_t>(call, function);
}

/// The formula in the arithmetic of its domain and of the operands' element type; `block` is its
/// loop in float32.
template <OpInfo::Domain kDomain, int kOperands, typename Single, typename Double, typename Out>
Result<HostView> apply_in_domain(const OpCall& call, Single single, Double precise,
                                 void (*block)(const float*, const float*, Out*, int64_t)) {
  if constexpr (kDomain == OpInfo::Domain::truth) {
    return apply<kOperands, bool>(call, [=](bool a, bool b) -> bool { return single(a, b); });
  } else {
    if constexpr (kDomain == OpInfo::Domain::number) {
      if (is_integer(call.operand_type(0).dtype)) return apply_integers<kOperands>(call, single);
    }
    if (call.options.precise) return apply<kOperands, double>(call, precise);
    return apply_blocks<kOperands, float, Out>(call, block);
  }
}

// The float32 loops, where evaluation spends its time, are functions that can be cloned. Formulas
// over truth values take floats as such here, and are not used so; those over integers have none.
#define SINTER_ELEMENTWISE(name, operands, result, domain, ...) SINTER_BLOCK_##domain(name)
#define SINTER_BLOCK_integer(name)
#define SINTER_BLOCK_number(name) SINTER_BLOCK_real(name)
#define SINTER_BLOCK_truth(name) SINTER_BLOCK_real(name)
#define SINTER_BLOCK_real(name)                                                                    \
  SINTER_VECTOR_CLONES void name##_block(const float* a, const float* b,                           \
                                         Element<decltype(math::name##_formula(0.0f, 0.0f))>* out, \
                                         int64_t count) {                                          \
    for (int64_t i = 0; i < count; ++i) out[i] = math::name##_formula(a[i], b[i]);                 \
  }
#include "ir/ops.def"

template <typename T>
Result<HostView> select(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  HostReader condition_reader(broadcast_view(call.operands[0], call.dims));
  HostReader a_reader(broadcast_view(call.operands[1], call.dims));
  HostReader b_reader(broadcast_view(call.operands[2], call.dims));
  uint8_t condition_scratch[kBlock];
  T a_scratch[kBlock], b_scratch[kBlock], results[kBlock];
  const int64_t total = value.view.volume(), bytes = whole_bytes(call.storage);
  for (int64_t start = 0; start < total; start += kBlock) {
    const int64_t count = std::min(kBlock, total - start);
    const uint8_t* condition = condition_reader.next(count, condition_scratch);
    const T* a = a_reader.next(count, a_scratch);
    const T* b = b_reader.next(count, b_scratch);
    for (int64_t i = 0; i < count; ++i) results[i] = condition[i] ? a[i] : b[i];
    store_run(results, count, call.storage, value.out + start * bytes);
  }
  return value.view;
}

// One value as another type, as the cast of ops.def defines it.
template <typename From>
int32_t to_i32(From x) {
  if constexpr (std::is_same_v<From, double>)
    return nearest_i32(std::trunc(x));
  else if constexpr (std::is_same_v<From, float>)
    return math::float_to_i32(x);
  else
    return math::i64_to_i32(x);
}
template <typename From>
int64_t to_i64(From x) {
  if constexpr (std::is_same_v<From, double>)
    return nearest_i64(std::trunc(x));
  else if constexpr (std::is_same_v<From, float>)
    return math::float_to_i64(x);
  else
    return x;
}
/// A float that the type has: rounded once.
template <typename From>
float to_bf16(From x) {
  if constexpr (std::is_floating_point_v<From>)
    return math::bf16_to_float(math::float_to_bf16(static_cast<float>(x)));
  else
    return math::bf16_to_float(math::i64_to_bf16(x));
}

/// result = function(x) per element.
template <typename From, typename Function>
Result<HostView> convert(const OpCall& call, Function function) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  HostReader reader(call.operands[0]);
  From scratch[kBlock];
  decltype(function(From{})) results[kBlock];
  const int64_t total = value.view.volume(), bytes = whole_bytes(call.storage);
  for (int64_t start = 0; start < total; start += kBlock) {
    const int64_t count = std::min(kBlock, total - start);
    const From* from = reader.next(count, scratch);
    std::transform(from, from + count, results, function);
    store_run(results, count, call.storage, value.out + start * bytes);
  }
  return value.view;
}

template <typename From>
Result<HostView> convert_from(const OpCall& call) {
  switch (call.storage) {
    case Storage::i32:
      return convert<From>(call, to_i32<From>);
    case Storage::i64:
      return convert<From>(call, to_i64<From>);
    case Storage::i1:
      return convert<From>(call, [](From x) -> uint8_t { return x != 0; });
    case Storage::f64:
      return convert<From>(call, [](From x) { return static_cast<double>(x); });
    case Storage::bf16:
      return convert<From>(call, to_bf16<From>);
    case Storage::f32:
    case Storage::f16:  // infinite long before a float is inexact
      return convert<From>(call, [](From x) { return static_cast<float>(x); });
  }
  SINTER_CHECK(false, "storage");
}

}  // namespace

#define SINTER_ELEMENTWISE(name, operands, result, domain, ...) \
  SINTER_EVALUATE_##domain(name, operands, domain)
#define SINTER_EVALUATE_integer(name, operands, domain)                                         \
  Result<HostView> evaluate_##name(const OpCall& call) {                                        \
    return apply_integers<operands>(call,                                                       \
                                    [](auto a, auto b) { return math::name##_formula(a, b); }); \
  }
#define SINTER_EVALUATE_number(name, operands, domain) SINTER_EVALUATE_real(name, operands, domain)
#define SINTER_EVALUATE_truth(name, operands, domain) SINTER_EVALUATE_real(name, operands, domain)
#define SINTER_EVALUATE_real(name, operands, domain)                                     \
  Result<HostView> evaluate_##name(const OpCall& call) {                                 \
    return apply_in_domain<OpInfo::Domain::domain, operands>(                            \
        call, [](auto a, auto b) { return math::name##_formula(a, b); },                 \
        [](double a, double b) { return precise::name##_formula(a, b); }, name##_block); \
  }
#include "ir/ops.def"

Result<HostView> evaluate_where(const OpCall& call) {
  switch (call.storage) {
    case Storage::i32:
      return select<int32_t>(call);
    case Storage::i64:
      return select<int64_t>(call);
    case Storage::i1:
      return select<uint8_t>(call);
    case Storage::f64:
      return select<double>(call);
    default:
      return select<float>(call);
  }
}

Result<HostView> evaluate_cast(const OpCall& call) {
  const DType from = call.operand_type(0).dtype;
  if (from == call.op.type.dtype) return call.operands[0];
  if (is_float(from) && is_float(call.op.type.dtype))
    return call.options.precise ? Result<HostView>(call.operands[0])
                                : copy_dense(call.operands[0], call.storage);
  switch (from) {
    case DType::i32:
      return convert_from<int32_t>(call);
    case DType::i64:
      return convert_from<int64_t>(call);
    case DType::i1:
      return convert_from<uint8_t>(call);
    default:
      return call.options.precise ? convert_from<double>(call) : convert_from<float>(call);
  }
}

}  // namespace sinter
