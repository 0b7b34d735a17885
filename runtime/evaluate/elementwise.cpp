// Elementwise ops: the formulas of ops.def, expanded over float, int32 and truth values with the
// functions of scalar_math.h, and over double for precise evaluation. Blocks of elements are
// widened, computed and rounded in turn, so that they stay in the first-level cache.
#include <algorithm>

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
#define SINTER_ELEMENTWISE(name, operands, result, domain, formula) \
  SINTER_DEFINE_FORMULA(name, formula)
#include "ir/ops.def"
}  // namespace sinter::math
namespace sinter::precise {
#define SINTER_ELEMENTWISE(name, operands, result, domain, formula) \
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

/// The formula in the arithmetic of its domain and of the operands' element type; `block` is its
/// loop in float32.
template <OpInfo::Domain kDomain, int kOperands, typename Single, typename Double, typename Out>
Result<HostView> apply_in_domain(const OpCall& call, Single single, Double precise,
                                 void (*block)(const float*, const float*, Out*, int64_t)) {
  if constexpr (kDomain == OpInfo::Domain::truth) {
    return apply<kOperands, bool>(call, [=](bool a, bool b) -> bool { return single(a, b); });
  } else {
    if constexpr (kDomain == OpInfo::Domain::number)
      if (call.operand_type(0).dtype == DType::i32) return apply<kOperands, int32_t>(call, single);
    if (call.options.precise) return apply<kOperands, double>(call, precise);
    return apply_blocks<kOperands, float, Out>(call, block);
  }
}

// The float32 loops, where evaluation spends its time, are functions that can be cloned. Formulas
// over truth values take floats as such here, and are not used so.
#define SINTER_ELEMENTWISE(name, operands, result, domain, formula)                                \
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

/// i32 or i1 to a float type or to i32, rounded once.
template <typename From>
Result<HostView> convert_integers(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  HostReader reader(call.operands[0]);
  From scratch[kBlock];
  int32_t integers[kBlock];
  double results[kBlock];
  const int64_t total = value.view.volume(), bytes = whole_bytes(call.storage);
  for (int64_t start = 0; start < total; start += kBlock) {
    const int64_t count = std::min(kBlock, total - start);
    const From* from = reader.next(count, scratch);
    std::byte* out = value.out + start * bytes;
    if (call.storage == Storage::i32) {
      std::copy(from, from + count, integers);
      store_run(integers, count, call.storage, out);
    } else {
      std::copy(from, from + count, results);  // exact in float64
      store_run(results, count, call.storage, out);
    }
  }
  return value.view;
}

}  // namespace

#define SINTER_ELEMENTWISE(name, operands, result, domain, formula)                      \
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
  if (from == DType::i32) return convert_integers<int32_t>(call);
  if (from == DType::i1) return convert_integers<uint8_t>(call);
  if (call.options.precise) return call.operands[0];
  return copy_dense(call.operands[0], call.storage);
}

}  // namespace sinter
