// tiled_attention and attention_log_sum in the order of kernels/tiled_attention/order.h; in precise
// evaluation a softmax in float64.
#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/tiled_attention/order.h"
#include "runtime/evaluate/attention_call.h"
#include "runtime/evaluate/tensor_cores.h"

namespace sinter {
namespace {

template <typename T>
class TiledAttention {
  using SeenRows = typename AttentionCall<T>::SeenRows;

 public:
  explicit TiledAttention(const OpCall& call)
      : call_(call),
        in_(call),
        heads_(in_.heads()),
        scale_(in_.number(AttrName::scale)),
        softcap_(in_.number(AttrName::softcap)),
        segment_(integer_or(call.op.attrs, AttrName::segment, 0)) {}

  Result<HostView> run() {
    return in_.evaluate([&](int64_t token, int64_t head, SeenRows keys) {
      std::vector<T> result(static_cast<size_t>(heads_.value_width));
      attend(token, head, keys, result);
      return result;
    });
  }
  Result<HostView> log_sums() {
    SINTER_LET(value, allocate(call_.dims, call_.storage));
    std::vector<T> result(static_cast<size_t>(heads_.value_width));
    SINTER_TRY(in_.for_each_head([&](int64_t token, int64_t head, SeenRows keys) {
      const T log_sum = attend(token, head, keys, result);
      store_run(&log_sum, 1, call_.storage,
                value.out + in_.place_of_head(token, head) * whole_bytes(call_.storage));
    }));
    return value.view;
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

  /// Returns the log-sum.
  double attend(int64_t token, int64_t head, SeenRows keys, std::vector<double>& out) const {
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
    if (in_.empty_zero() && largest == -INFINITY) return largest;
    for (int64_t j = 0; j < keys.count; ++j) {
      const double weight = std::exp(scores[static_cast<size_t>(j)] - largest);
      weights += weight;
      if (!shows_tile(token, head, keys.row(j) / tile_keys()) ||
          !in_.keeps(token, head, keys.row(j)))
        continue;
      for (int64_t i = 0; i < heads_.value_width; ++i)
        out[static_cast<size_t>(i)] += weight * value(token, keys.row(j), head)[i];
    }
    for (double& element : out) element *= in_.dropped_scale() / weights;
    return weights == 0 || largest == -INFINITY ? -INFINITY
                                                : largest / std::log(2.0) + std::log2(weights);
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

  float attend(int64_t token, int64_t head, SeenRows keys, std::vector<float>& out) const {
    const int64_t tile_keys = this->tile_keys();
    const float factor = attention_factor(scale_, softcap_, in_.adds_mask());
    float largest = -INFINITY, sums[8] = {};
    std::fill(out.begin(), out.end(), 0.0f);
    State joined;
    std::optional<int> segment;
    std::vector<float> logits(static_cast<size_t>(tile_keys));
    for (KeysOfTile tile{}; tile.first < keys.count; tile.first = tile.end) {
      tile.begin = keys.row(tile.first) / tile_keys * tile_keys;
      tile.end = keys.key_at_least(tile.begin + tile_keys);
      if (!shows_tile(token, head, tile.begin / tile_keys)) continue;
      const int own_segment = segment_of(token, tile.begin / tile_keys);
      if (segment && *segment != own_segment) {
        joined.join({largest, sum_of(sums), out}, factor);
        largest = -INFINITY;
        std::fill(out.begin(), out.end(), 0.0f);
        std::fill(std::begin(sums), std::end(sums), 0.0f);
      }
      segment = own_segment;
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
        weight = in_.keeps(token, head, tile.begin + j)
                     ? rounded_to_16_bits(weight, call_.operand_type(0).dtype)
                     : 0.0f;
      }
      add_values(token, head, keys, tile, logits, out);
    }
    joined.join({largest, sum_of(sums), out}, factor);
    const float inverse = attention_inverse(joined.weights, in_.empty_zero());
    const float by = math::mul(inverse, in_.dropped_scale());
    for (size_t i = 0; i < out.size(); ++i) out[i] = math::mul(joined.sums[i], by);
    return attention_log_sum(joined.weights,
                             attention_shift(joined.largest, factor, in_.adds_mask()), factor,
                             in_.adds_mask());
  }

  /// The state of a segment, or of several that were joined.
  struct State {
    float largest = -INFINITY, weights = 0;
    std::vector<float> sums = {};

    void join(const State& other, float factor) {
      const AttentionJoin by = attention_join(largest, other.largest, factor);
      weights = attention_joined(by, weights, other.weights);
      sums.resize(other.sums.size());
      for (size_t i = 0; i < sums.size(); ++i)
        sums[i] = attention_joined(by, sums[i], other.sums[i]);
      largest = math::maximum(largest, other.largest);
    }
  };
  static float sum_of(const float (&sums)[8]) {
    const float half = math::add(math::add(sums[0], sums[1]), math::add(sums[2], sums[3]));
    return math::add(half, math::add(math::add(sums[4], sums[5]), math::add(sums[6], sums[7])));
  }
  int segment_of(int64_t token, int64_t tile) const {
    if (segment_ == 0) return 0;
    return attention_segment(static_cast<int>(tile), static_cast<int>(in_.first(token)),
                             static_cast<int>(tile_keys()),
                             static_cast<int>(segment_ / tile_keys()));
  }

  /// The logits of a tile's rows, -inf of those that the token does not see. Returns the largest of
  /// them and `largest`.
  float find_logits(int64_t token, int64_t head, SeenRows keys, const KeysOfTile& tile,
                    float largest, std::vector<float>& logits) const {
    const float* q = in_.query(token, head);
    std::fill(logits.begin(), logits.end(), -INFINITY);
    for (int64_t j = tile.first; j < tile.end; ++j) {
      const float dot = dot_of_steps(q, key(token, keys.row(j), head), heads_.width);
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
    for (int64_t step = tile.begin; step < tile.begin + tile_keys(); step += kTensorCoreStep) {
      const int64_t from = std::max(step, low), to = std::min(step + kTensorCoreStep, end);
      if (from >= to) continue;
      for (size_t i = 0; i < out.size(); ++i)
        out[i] = multiply_step(
            out[i], [&](int64_t e) { return weights[static_cast<size_t>(from - tile.begin + e)]; },
            [&](int64_t e) { return keys.has(from + e) ? value(token, from + e, head)[i] : 0.0f; },
            to - from);
    }
  }

  const OpCall& call_;
  AttentionCall<T> in_;
  AttentionHeads heads_;
  double scale_, softcap_;
  int64_t segment_;  // keys; 0: they are not cut
};

}  // namespace

Result<HostView> evaluate_attention_log_sum(const OpCall& call) {
  return call.options.precise ? TiledAttention<double>(call).log_sums()
                              : TiledAttention<float>(call).log_sums();
}

Result<HostView> evaluate_tiled_attention(const OpCall& call) {
  return call.options.precise ? TiledAttention<double>(call).run()
                              : TiledAttention<float>(call).run();
}

}  // namespace sinter
