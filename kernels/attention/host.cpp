// tiled_attention in the order of kernels/attention/order.h; in precise evaluation a softmax in
// float64.
#include <algorithm>
#include <cmath>

#include "ir/attention_heads.h"
#include "ir/row_numbers.h"
#include "kernels/attention/order.h"
#include "runtime/evaluate/ops.h"

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
 public:
  explicit TiledAttention(const OpCall& call)
      : call_(call),
        q_(dense_elements(call.operands[0], q_scratch_)),
        keys_(dense_elements(call.operands[1], keys_scratch_)),
        values_(dense_elements(call.operands[2], values_scratch_)),
        first_(dense_elements(call.operands[3], first_scratch_)),
        last_(dense_elements(call.operands[4], last_scratch_)) {
    const Attributes& attrs = call.op.attrs;
    const AttentionHeads heads = attention_heads(attrs, call.operand_type(1), call.operand_type(2));
    heads_ = heads.count;
    kv_heads_ = heads.kv_count;
    width_ = heads.width;
    value_width_ = heads.value_width;
    scale_ = attrs.get<double>(AttrName::scale);
    if (const AttrValue* cap = attrs.find(AttrName::softcap)) softcap_ = std::get<double>(*cap);
    if (const AttrValue* window = attrs.find(AttrName::window))
      window_ = std::get<int64_t>(*window);
  }

  Result<HostView> run() {
    SINTER_LET(value, allocate(call_.dims, call_.storage));
    const int64_t rows = call_.operands[1].dims[0];
    std::byte* out = value.out;
    std::vector<T> result(static_cast<size_t>(value_width_));
    for (int64_t n = 0; n < call_.dims[0]; ++n) {
      if (!is_checked(call_.op) && first_[n] <= last_[n] && (first_[n] < 0 || last_[n] >= rows))
        return call_.error(
            fmt::format("token {} sees rows {} .. {} of 0 .. {}", n, first_[n], last_[n], rows - 1),
            "check the inputs");
      const AttentionRange keys =
          rows_of_cache(attention_range(first_[n], last_[n], window_), rows);
      for (int64_t head = 0; head < heads_; ++head) {
        attend(q_ + (n * heads_ + head) * width_, head / (heads_ / kv_heads_), keys, result);
        store_run(result.data(), value_width_, call_.storage, out);
        out += value_width_ * whole_bytes(call_.storage);
      }
    }
    return value.view;
  }

 private:
  const T* key(int64_t row, int64_t head) const {
    return keys_ + (row * kv_heads_ + head) * width_;
  }
  const T* value(int64_t row, int64_t head) const {
    return values_ + (row * kv_heads_ + head) * value_width_;
  }

  void attend(const double* q, int64_t head, AttentionRange keys, std::vector<double>& out) const {
    std::vector<double> scores;
    double largest = -INFINITY, weights = 0;
    for (int64_t j = keys.low; j < keys.low + keys.count; ++j) {
      double dot = 0;
      for (int64_t i = 0; i < width_; ++i) dot += q[i] * key(j, head)[i];
      const double score =
          softcap_ == 0 ? dot * scale_ : std::tanh(dot * scale_ / softcap_) * softcap_;
      scores.push_back(score);
      largest = largest != largest || score != score ? NAN : std::max(largest, score);
    }
    std::fill(out.begin(), out.end(), 0.0);
    for (int64_t j = 0; j < keys.count; ++j) {
      const double weight = std::exp(scores[static_cast<size_t>(j)] - largest);
      weights += weight;
      for (int64_t i = 0; i < value_width_; ++i)
        out[static_cast<size_t>(i)] += weight * value(keys.low + j, head)[i];
    }
    for (double& element : out) element /= weights;
  }

  void attend(const float* q, int64_t head, AttentionRange keys, std::vector<float>& out) const {
    const int64_t tile_keys =
        attention_key_tile(static_cast<int>(width_), static_cast<int>(value_width_));
    const int64_t end = keys.low + keys.count;
    const float factor = attention_factor(scale_, softcap_);
    float largest = -INFINITY, sums[8] = {};
    std::fill(out.begin(), out.end(), 0.0f);
    std::vector<float> logits(static_cast<size_t>(tile_keys));
    for (int64_t begin = keys.low / tile_keys * tile_keys; keys.count > 0 && begin < end;
         begin += tile_keys) {
      const float before = largest;
      for (int64_t j = 0; j < tile_keys; ++j) {
        float& logit = logits[static_cast<size_t>(j)] = -INFINITY;
        if (begin + j < keys.low || begin + j >= end) continue;
        float dot = 0;
        const float* k = key(begin + j, head);
        for (int64_t i = 0; i < width_; i += kStep)
          dot = multiply_step(
              dot, q + i, [&](int64_t e) { return k[i + e]; },
              std::min<int64_t>(kStep, width_ - i));
        logit = attention_logit(dot, static_cast<float>(scale_), static_cast<float>(softcap_));
        largest = math::maximum(largest, logit);
      }
      if (largest != before) {
        const float scale = attention_scale(before, largest, factor);
        for (float& element : out) element = math::mul(element, scale);
        for (float& sum : sums) sum = math::mul(sum, scale);
      }
      const float shift = -math::mul(attention_base(largest), factor);
      for (int64_t j = 0; j < tile_keys; ++j) {
        float& weight = logits[static_cast<size_t>(j)];
        weight = attention_exp2(math::fma(weight, factor, shift));
        sums[j % 8] = math::add(sums[j % 8], weight);
        weight = rounded(weight, call_.op.type.dtype);
      }
      // Keys that the token does not see have the weight 0 and are skipped.
      for (int64_t j = 0; j < tile_keys; j += kStep) {
        const int64_t from = std::max<int64_t>(begin + j, keys.low),
                      to = std::min<int64_t>(begin + j + kStep, end);
        if (from >= to) continue;
        for (int64_t i = 0; i < value_width_; ++i)
          out[static_cast<size_t>(i)] = multiply_step(
              out[static_cast<size_t>(i)], logits.data() + (from - begin),
              [&](int64_t e) { return value(from + e, head)[i]; }, to - from);
      }
    }
    const float half = math::add(math::add(sums[0], sums[1]), math::add(sums[2], sums[3]));
    const float other = math::add(math::add(sums[4], sums[5]), math::add(sums[6], sums[7]));
    const float by = math::div(1.0f, math::add(half, other));
    for (float& element : out) element = math::mul(element, by);
  }

  const OpCall& call_;
  std::vector<T> q_scratch_, keys_scratch_, values_scratch_;
  std::vector<int32_t> first_scratch_, last_scratch_;
  const T *q_, *keys_, *values_;
  const int32_t *first_, *last_;
  int64_t heads_ = 0, kv_heads_ = 0, width_ = 0, value_width_ = 0, window_ = 0;
  double scale_ = 0, softcap_ = 0;
};

}  // namespace

Result<HostView> evaluate_tiled_attention(const OpCall& call) {
  return call.options.precise ? TiledAttention<double>(call).run()
                              : TiledAttention<float>(call).run();
}

}  // namespace sinter
