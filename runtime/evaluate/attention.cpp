// attention, straight from its definition: per token and query head scores, softmax in float32,
// probabilities rounded to the element type, the weighted sum of the values.
#include <algorithm>
#include <limits>

#include "ir/reduction_order.h"
#include "ir/scalar_math.h"
#include "runtime/evaluate/attention_call.h"
#include "runtime/evaluate/precise_math.h"
#include "runtime/evaluate/reduce.h"

namespace sinter {
namespace {

template <typename T>
T rounded(T value, Storage storage) {
  double room;  // for an element of any storage
  std::byte* memory = reinterpret_cast<std::byte*>(&room);
  store_run(&value, 1, storage, memory);
  load_run(storage, memory, 1, 1, &value);
  return value;
}

template <typename T>
class Attention {
  using SeenRows = typename AttentionCall<T>::SeenRows;

 public:
  explicit Attention(const OpCall& call)
      : call_(call),
        in_(call),
        scale_(static_cast<T>(in_.number(AttrName::scale))),
        softcap_(static_cast<T>(in_.number(AttrName::softcap))) {}

  Result<HostView> run() {
    return in_.evaluate(
        [&](int64_t token, int64_t head, SeenRows keys) { return attend(token, head, keys); });
  }

 private:
  std::vector<T> attend(int64_t token, int64_t head, SeenRows keys) {
    const int64_t kv_head = head / in_.heads().group();
    find_probabilities(token, head, kv_head, keys);
    std::vector<T> sums(
        static_cast<size_t>(in_.heads().value_width),
        row_.empty() && !in_.empty_zero() ? std::numeric_limits<T>::quiet_NaN() : T{0});
    for (int64_t j = 0; j < keys.count; ++j) {
      const T* values = in_.value(token, keys.row(j), kv_head);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += row_[static_cast<size_t>(j)] * values[i];
    }
    return sums;
  }

  void find_probabilities(int64_t token, int64_t head, int64_t kv_head, SeenRows keys) {
    using math::tanh;
    using precise::tanh;
    row_.clear();
    for (int64_t j = 0; j < keys.count; ++j) {
      const T *q = in_.query(token, head), *k = in_.key(token, keys.row(j), kv_head);
      T score = 0;
      for (int64_t i = 0; i < in_.heads().width; ++i) score += q[i] * k[i];
      score *= scale_;
      if (softcap_ != 0) score = tanh(score / softcap_) * softcap_;
      row_.push_back(in_.masked(score, j));
    }
    if (row_.empty()) return;
    softmax();
    for (int64_t j = 0; j < keys.count; ++j)
      if (!in_.keeps(token, head, keys.row(j))) row_[static_cast<size_t>(j)] *= 0;  // NaN stays
  }

  /// Turns scores into probabilities.
  void softmax() {
    using math::exp;
    using precise::exp;
    const int64_t count = static_cast<int64_t>(row_.size());
    const T largest = reduce_max(row_.data(), count, kSymbolicLanes);
    if (in_.empty_zero() && largest == -std::numeric_limits<T>::infinity())
      return row_.assign(row_.size(), T{0});
    for (T& value : row_) value = exp(value - largest);
    const T sum = reduce_sum(row_.data(), count, kSymbolicLanes);
    const T scale = in_.dropped_scale();
    for (T& value : row_) value = rounded(value / sum * scale, call_.storage);
  }

  const OpCall& call_;
  AttentionCall<T> in_;
  T scale_, softcap_;
  std::vector<T> row_;
};

}  // namespace

Result<HostView> evaluate_attention(const OpCall& call) {
  return call.options.precise ? Attention<double>(call).run() : Attention<float>(call).run();
}

}  // namespace sinter
