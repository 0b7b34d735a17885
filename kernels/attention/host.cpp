// tiled_attention in the order of kernels/attention/order.h; in precise evaluation a softmax in
// float64.
#include <algorithm>
#include <cmath>

#include "kernels/attention/order.h"
#include "runtime/evaluate/attention_call.h"

namespace sinter {
namespace {

constexpr int kStep = 16;  // elements that tensor cores multiply at once

/// sum + the products of `count` elements, at most kStep.
template <typename B>
float multiply_step(float sum, const float* a, const B& b, int64_t count) {
  double exact = sum;
  for (int64_t k = 0; k < count; ++k)
    exact += static_cast<double>(a[k]) * static_cast<double>(b(k));
  return static_cast<float>(exact);
}

float rounded(float x, DType dtype) {
  return dtype == DType::f16 ? math::f16_to_float(math::float_to_f16(x))
                             : math::bf16_to_float(math::float_to_bf16(x));
}

template <typename T>
class TiledAttention {
  using SeenRows = typename AttentionCall<T>::SeenRows;

 public:
  explicit TiledAttention(const OpCall& call)
      : call_(call),
        in_(call),
        heads_(in_.heads()),
        scale_(in_.number(AttrName::scale)),
        softcap_(in_.number(AttrName::softcap)) {}

  Result<HostView> run() {
    return in_.evaluate([&](int64_t token, int64_t head, SeenRows keys) {
      std::vector<T> result(static_cast<size_t>(heads_.value_width));
      attend(token, head, keys, result);
      return result;
    });
  }

 private:
  const T* key(int64_t token, int64_t row, int64_t head) const {
    return in_.key(token, row, head / heads_.group());
  }
  const T* value(int64_t token, int64_t row, int64_t head) const {
    return in_.value(token, row, head / heads_.group());
  }

  int64_t tile_keys() const {
    return attention_key_tile(static_cast<int>(heads_.width), static_cast<int>(heads_.value_width));
  }
  bool shows_tile(int64_t token, int64_t head, int64_t tile) const {
    return in_.shows_tile(token, head, kAttentionTokenTile, tile);
  }

  void attend(int64_t token, int64_t head, SeenRows keys, std::vector<double>& out) const {
    std::vector<double> scores;
    const double* q = in_.query(token, head);
    double largest = -INFINITY, weights = 0;
    for (int64_t j = 0; j < keys.count; ++j) {
      if (!shows_tile(token, head, (keys.low + j) / tile_keys())) {
        scores.push_back(-INFINITY);
        continue;
      }
      double dot = 0;
      for (int64_t i = 0; i < heads_.width; ++i) dot += q[i] * key(token, keys.low + j, head)[i];
      const double score = in_.masked(
          softcap_ == 0 ? dot * scale_ : std::tanh(dot * scale_ / softcap_) * softcap_, j);
      scores.push_back(score);
      largest = largest != largest || score != score ? NAN : std::max(largest, score);
    }
    std::fill(out.begin(), out.end(), 0.0);
    if (in_.empty_zero() && largest == -INFINITY) return;
    for (int64_t j = 0; j < keys.count; ++j) {
      const double weight = std::exp(scores[static_cast<size_t>(j)] - largest);
      weights += weight;
      if (!shows_tile(token, head, (keys.low + j) / tile_keys())) continue;
      for (int64_t i = 0; i < heads_.value_width; ++i)
        out[static_cast<size_t>(i)] += weight * value(token, keys.low + j, head)[i];
    }
    for (double& element : out) element /= weights;
  }

  /// `j`: the key's place among those that the token sees.
  float logit(float dot, int64_t j) const {
    const float scale = static_cast<float>(scale_), softcap = static_cast<float>(softcap_);
    if (!in_.has_mask()) return attention_logit(dot, scale, softcap);
    const float mask = static_cast<float>(in_.mask(j));
    return in_.adds_mask() ? attention_logit(dot, scale, softcap, mask)
                           : attention_logit(dot, scale, softcap, mask == 0);
  }

  void attend(int64_t token, int64_t head, SeenRows keys, std::vector<float>& out) const {
    const int64_t tile_keys = this->tile_keys(), end = keys.low + keys.count;
    const float* q = in_.query(token, head);
    const float factor = attention_factor(scale_, softcap_, in_.adds_mask());
    float largest = -INFINITY, sums[8] = {};
    std::fill(out.begin(), out.end(), 0.0f);
    std::vector<float> logits(static_cast<size_t>(tile_keys));
    for (int64_t begin = keys.low / tile_keys * tile_keys; keys.count > 0 && begin < end;
         begin += tile_keys) {
      if (!shows_tile(token, head, begin / tile_keys)) continue;
      const float before = largest;
      for (int64_t j = 0; j < tile_keys; ++j) {
        float& x = logits[static_cast<size_t>(j)] = -INFINITY;
        if (begin + j < keys.low || begin + j >= end) continue;
        float dot = 0;
        const float* k = key(token, begin + j, head);
        for (int64_t i = 0; i < heads_.width; i += kStep)
          dot = multiply_step(
              dot, q + i, [&](int64_t e) { return k[i + e]; },
              std::min<int64_t>(kStep, heads_.width - i));
        x = logit(dot, begin + j - keys.low);
        largest = math::maximum(largest, x);
      }
      if (largest != before) {
        const float scale = attention_scale(before, largest, factor);
        for (float& element : out) element = math::mul(element, scale);
        for (float& sum : sums) sum = math::mul(sum, scale);
      }
      const float shift = attention_shift(largest, factor, in_.adds_mask());
      for (int64_t j = 0; j < tile_keys; ++j) {
        float& weight = logits[static_cast<size_t>(j)];
        weight = attention_weight(weight, shift, factor, in_.adds_mask());
        sums[j % 8] = math::add(sums[j % 8], weight);
        weight = rounded(weight, call_.op.type.dtype);
      }
      // Keys that the token does not see have the weight 0 and are skipped.
      for (int64_t j = 0; j < tile_keys; j += kStep) {
        const int64_t from = std::max<int64_t>(begin + j, keys.low),
                      to = std::min<int64_t>(begin + j + kStep, end);
        if (from >= to) continue;
        for (int64_t i = 0; i < heads_.value_width; ++i)
          out[static_cast<size_t>(i)] = multiply_step(
              out[static_cast<size_t>(i)], logits.data() + (from - begin),
              [&](int64_t e) { return value(token, from + e, head)[i]; }, to - from);
      }
    }
    const float half = math::add(math::add(sums[0], sums[1]), math::add(sums[2], sums[3]));
    const float other = math::add(math::add(sums[4], sums[5]), math::add(sums[6], sums[7]));
    const float by = attention_inverse(math::add(half, other), in_.empty_zero());
    for (float& element : out) element = math::mul(element, by);
  }

  const OpCall& call_;
  AttentionCall<T> in_;
  AttentionHeads heads_;
  double scale_, softcap_;
};

}  // namespace

Result<HostView> evaluate_tiled_attention(const OpCall& call) {
  return call.options.precise ? TiledAttention<double>(call).run()
                              : TiledAttention<float>(call).run();
}

}  // namespace sinter
