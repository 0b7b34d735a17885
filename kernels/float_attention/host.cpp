// float_attention in the order of kernels/float_attention/order.h; in precise evaluation the same
// sums in float64.
#include <algorithm>
#include <cmath>

#include "kernels/float_attention/order.h"
#include "runtime/evaluate/attention_call.h"

namespace sinter {
namespace {

/// The functions of order.h, in float64 without their roundings.
template <typename T>
struct AttentionSteps;
template <>
struct AttentionSteps<float> {
  static float score(float dot, float scale, float softcap) {
    return attention_score(dot, scale, softcap);
  }
  static float weight(float score, float largest) { return attention_weight(score, largest); }
  static float growth(float before, float largest) { return attention_growth(before, largest); }
  static float multiply_add(float a, float b, float c) { return math::fma(a, b, c); }
  static float larger(float a, float b) { return math::maximum(a, b); }
};
template <>
struct AttentionSteps<double> {
  static double score(double dot, double scale, double softcap) {
    const double score = dot * scale;
    return softcap == 0 ? score : std::tanh(score / softcap) * softcap;
  }
  static double weight(double score, double largest) {
    return score == -INFINITY ? 0 : std::exp(score - largest);
  }
  static double growth(double before, double largest) {
    return before == largest ? 1 : weight(before, largest);
  }
  static double multiply_add(double a, double b, double c) { return a * b + c; }
  static double larger(double a, double b) { return a != a || b != b ? NAN : std::max(a, b); }
};

template <typename T>
class FloatAttention {
  using Steps = AttentionSteps<T>;
  using SeenRows = typename AttentionCall<T>::SeenRows;

 public:
  explicit FloatAttention(const OpCall& call)
      : in_(call),
        heads_(in_.heads()),
        scale_(static_cast<T>(in_.number(AttrName::scale))),
        softcap_(static_cast<T>(in_.number(AttrName::softcap))) {}

  Result<HostView> run() {
    return in_.evaluate([&](int64_t token, int64_t head, SeenRows seen) {
      return attend({token, head, seen});
    });
  }

 private:
  struct Query {
    int64_t token, head;
    SeenRows seen;
  };
  struct Sums {
    std::vector<T> values;
    T weights[8] = {}, largest = -INFINITY;

    void grow(T to) {
      if (to == largest) return;
      const T by = Steps::growth(largest, to);
      for (T& value : values) value *= by;
      for (T& weight : weights) weight *= by;
      largest = to;
    }
    T all_weights() const {
      return ((weights[0] + weights[1]) + (weights[2] + weights[3])) +
             ((weights[4] + weights[5]) + (weights[6] + weights[7]));
    }
  };

  std::vector<T> attend(const Query& q) const {
    Sums sums;
    sums.values.assign(static_cast<size_t>(heads_.value_width), T{0});
    for (int64_t key = 0; key < q.seen.count;) {
      const int64_t tile = q.seen.row(key) / kFloatTileKeys;
      const int64_t end = q.seen.key_at_least((tile + 1) * kFloatTileKeys);
      add_tile(sums, q, key, end);
      key = end;
    }
    const T by = sums.all_weights();
    for (T& value : sums.values) value = in_.empty_zero() && by == 0 ? T{0} : value / by;
    return std::move(sums.values);
  }

  /// Adds the keys of the token before `end`, all of one tile.
  void add_tile(Sums& sums, const Query& q, int64_t key, int64_t end) const {
    const int64_t kv_head = q.head / heads_.group();
    llvm::SmallVector<std::pair<int64_t, T>, kFloatTileKeys> scores;
    T largest = sums.largest;
    for (; key < end; ++key) {
      if (!sees(key)) continue;
      scores.emplace_back(q.seen.row(key), score(q, key, kv_head));
      largest = Steps::larger(largest, scores.back().second);
    }
    sums.grow(largest);
    for (const auto& [row, score] : scores) {
      const T weight = Steps::weight(score, largest);
      const T* value = in_.value(q.token, row, kv_head);
      for (int64_t i = 0; i < heads_.value_width; ++i)
        sums.values[i] = Steps::multiply_add(weight, value[i], sums.values[i]);
      sums.weights[row % 8] += weight;
    }
  }

  bool sees(int64_t key) const { return !in_.has_mask() || in_.adds_mask() || in_.mask(key) == 0; }
  T score(const Query& q, int64_t key, int64_t kv_head) const {
    const T *a = in_.query(q.token, q.head), *b = in_.key(q.token, q.seen.row(key), kv_head);
    T dot = 0;
    for (int64_t i = 0; i < heads_.width; ++i) dot = Steps::multiply_add(a[i], b[i], dot);
    return in_.masked(Steps::score(dot, scale_, softcap_), key);
  }

  AttentionCall<T> in_;
  AttentionHeads heads_;
  T scale_, softcap_;
};

}  // namespace

Result<HostView> evaluate_float_attention(const OpCall& call) {
  return call.options.precise ? FloatAttention<double>(call).run()
                              : FloatAttention<float>(call).run();
}

}  // namespace sinter
