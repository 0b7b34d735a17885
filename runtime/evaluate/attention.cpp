// attention, straight from its definition: per token and query head scores, softmax in float32,
// probabilities rounded to the element type, the weighted sum of the values.
#include <algorithm>
#include <limits>

#include "ir/reduction_order.h"
#include "ir/scalar_math.h"
#include "runtime/evaluate/ops.h"
#include "runtime/evaluate/precise_math.h"
#include "runtime/evaluate/reduce.h"

namespace sinter {
namespace {

/// Turns scores into probabilities, in place. Rounded to `storage` at the end.
template <typename T>
void softmax(const Attributes& attrs, Storage storage, std::vector<T>& row) {
  using math::exp;
  using math::tanh;
  using precise::exp;
  using precise::tanh;
  const T scale = static_cast<T>(attrs.get<double>(AttrName::scale));
  const AttrValue* softcap = attrs.find(AttrName::softcap);
  const T cap = softcap != nullptr ? static_cast<T>(std::get<double>(*softcap)) : T{0};
  for (T& value : row) {
    value *= scale;
    if (softcap != nullptr) value = tanh(value / cap) * cap;
  }
  const int64_t count = static_cast<int64_t>(row.size());
  const T largest = reduce_max(row.data(), count, kSymbolicLanes);
  for (T& value : row) value = exp(value - largest);
  const T sum = reduce_sum(row.data(), count, kSymbolicLanes);
  for (T& value : row) {
    value /= sum;
    double rounded;  // room for an element of any storage
    std::byte* memory = reinterpret_cast<std::byte*>(&rounded);
    store_run(&value, 1, storage, memory);
    load_run(storage, memory, 1, 1, &value);
  }
}

template <typename T>
Result<HostView> attend(const OpCall& call) {
  std::vector<T> q_scratch, keys_scratch, values_scratch;
  std::vector<int32_t> firsts_scratch, slots_scratch;
  const T* q = dense_elements(call.operands[0], q_scratch);
  const T* keys = dense_elements(call.operands[1], keys_scratch);
  const T* values = dense_elements(call.operands[2], values_scratch);
  const int32_t* firsts = dense_elements(call.operands[3], firsts_scratch);
  const int32_t* slots = dense_elements(call.operands[4], slots_scratch);
  const Attributes& attrs = call.op.attrs;
  const int64_t heads = attrs.get<int64_t>(AttrName::heads);
  const int64_t kv_heads = attrs.get<int64_t>(AttrName::kv_heads);
  const int64_t rows = call.operands[1].dims[0];
  const int64_t key_width = call.operands[1].dims[1], value_width = call.operands[2].dims[1];
  const int64_t hd = key_width / kv_heads, vd = value_width / kv_heads;
  const int64_t width = call.dims[1], tokens = call.dims[0];
  SINTER_LET(value, allocate(call.dims, call.storage));
  std::vector<T> row, sums(static_cast<size_t>(vd));
  for (int64_t n = 0; n < tokens; ++n) {
    const int64_t slot = slots[n];
    int64_t first = firsts[n];
    if (first <= slot && (first < 0 || slot >= rows))
      return call.error(
          fmt::format("token {} sees rows {} .. {} of 0 .. {}", n, first, slot, rows - 1),
          "check the inputs");
    if (const AttrValue* window = attrs.find(AttrName::window))
      first = std::max(first, slot - (std::get<int64_t>(*window) - 1));
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t kv_head = head / (heads / kv_heads);
      row.clear();
      for (int64_t t = first; t <= slot; ++t) {
        T score = 0;
        for (int64_t i = 0; i < hd; ++i)
          score += q[(n * heads + head) * hd + i] * keys[t * key_width + kv_head * hd + i];
        row.push_back(score);
      }
      softmax(attrs, call.storage, row);
      std::fill(sums.begin(), sums.end(), row.empty() ? std::numeric_limits<T>::quiet_NaN() : T{0});
      for (int64_t t = first; t <= slot; ++t)
        for (int64_t i = 0; i < vd; ++i)
          sums[i] += row[t - first] * values[t * value_width + kv_head * vd + i];
      store_run(sums.data(), vd, call.storage,
                value.out + (n * width + head * vd) * whole_bytes(call.storage));
    }
  }
  return value.view;
}

}  // namespace

Result<HostView> evaluate_attention(const OpCall& call) {
  return call.options.precise ? attend<double>(call) : attend<float>(call);
}

}  // namespace sinter
