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
      if (!shows_tile(token, head, keys.row(j) / tile_keys())) {
        scores.push_back(-INFINITY);
        continue;
      }
      double dot = 0;
      for (int64_t i = 0; i < heads_.width; ++i) dot += q[i] * key(token, keys.row(j), head)[i];
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
      if (!shows_tile(token, head, keys.row(j) / tile_keys())) continue;
      for (int64_t i = 0; i < heads_.value_width; ++i)
        out[static_cast<size_t>(i)] += weight * value(token, keys.row(j), head)[i];
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

  /// Keys of a token that are in one tile: first .. end - 1; `begin`: the tile's first row.
  struct KeysOfTile {
    int64_t first, end, begin;
  };

  void attend(int64_t token, int64_t head, SeenRows keys, std::vector<float>& out) const {
    const int64_t tile_keys = this->tile_keys();
    const float factor = attention_factor(scale_, softcap_, in_.adds_mask());
    float largest = -INFINITY, sums[8] = {};
    std::fill(out.begin(), out.end(), 0.0f);
    std::vector<float> logits(static_cast<size_t>(tile_keys));
    for (KeysOfTile tile{}; tile.first < keys.count; tile.first = tile.end) {
      tile.begin = keys.row(tile.first) / tile_keys * tile_keys;
      tile.end = keys.key_at_least(tile.begin + tile_keys);
      if (!shows_tile(token, head, tile.begin / tile_keys)) continue;
      const float before = largest;
      largest = find_logits(token, head, keys, tile, before, logits);
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
      add_values(token, head, keys, tile, logits, out);
    }
    const float half = math::add(math::add(sums[0], sums[1]), math::add(sums[2], sums[3]));
    const float other = math::add(math::add(sums[4], sums[5]), math::add(sums[6], sums[7]));
    const float by = attention_inverse(math::add(half, other), in_.empty_zero());
    for (float& element : out) element = math::mul(element, by);
  }

  /// The logits of a tile's rows, -inf of those that the token does not see. Returns the largest of
  /// them and `largest`.
  float find_logits(int64_t token, int64_t head, SeenRows keys, const KeysOfTile& tile,
                    float largest, std::vector<float>& logits) const {
    const float* q = in_.query(token, head);
    std::fill(logits.begin(), logits.end(), -INFINITY);
    for (int64_t j = tile.first; j < tile.end; ++j) {
      float dot = 0;
      const float* k = key(token, keys.row(j), head);
      for (int64_t i = 0; i < heads_.width; i += kStep)
        dot = multiply_step(
            dot, q + i, [&](int64_t e) { return k[i + e]; },
            std::min<int64_t>(kStep, heads_.width - i));
      float& x = logits[static_cast<size_t>(keys.row(j) - tile.begin)];
      x = logit(dot, j);
      largest = math::maximum(largest, x);
    }
    return largest;
  }

  /// Adds the values of a tile's rows. Rows that the token does not see have the weight 0; those
  /// before the first and after the last that it sees are skipped.
  void add_values(int64_t token, int64_t head, SeenRows keys, const KeysOfTile& tile,
                  const std::vector<float>& weights, std::vector<float>& out) const {
    const int64_t low = keys.row(tile.first), end = keys.row(tile.end - 1) + 1;
    for (int64_t step = tile.begin; step < tile.begin + tile_keys(); step += kStep) {
      const int64_t from = std::max(step, low), to = std::min(step + kStep, end);
      if (from >= to) continue;
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = multiply_step(
            out[i], weights.data() + (from - tile.begin),
            [&](int64_t e) { return keys.has(from + e) ? value(token, from + e, head)[i] : 0.0f; },
            to - from);
    }
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
