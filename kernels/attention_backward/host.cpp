// The gradients of attention in the order of kernels/attention_backward/order.h; in precise
// evaluation the same sums in float64.
#include <algorithm>
#include <cmath>

#include "kernels/attention_backward/order.h"
#include "runtime/evaluate/attention_call.h"
#include "runtime/evaluate/tensor_cores.h"

namespace sinter {
namespace {

constexpr size_t kGrad = 5, kLogSum = 6, kDelta = 7, kMask = 8;  // operands

template <typename T>
class AttentionGradients {
  using SeenRows = typename AttentionCall<T>::SeenRows;

 public:
  explicit AttentionGradients(const OpCall& call)
      : call_(call),
        in_(call, kMask),
        heads_(in_.heads()),
        grad_(dense_elements(call.operands[kGrad], grad_scratch_)),
        log_sums_(dense_elements(call.operands[kLogSum], log_sum_scratch_)),
        deltas_(dense_elements(call.operands[kDelta], delta_scratch_)),
        scale_(static_cast<T>(in_.number(AttrName::scale))),
        softcap_(static_cast<T>(in_.number(AttrName::softcap))),
        factor_(attention_factor(in_.number(AttrName::scale), in_.number(AttrName::softcap),
                                 in_.adds_mask())) {}

  Result<HostView> run() {
    const OpKind kind = call_.op.kind;
    const bool of_queries = kind == OpKind::attention_query_gradient;
    const bool of_values = kind == OpKind::attention_value_gradient;
    const int64_t width = of_values ? heads_.value_width : heads_.width;
    const int64_t rows = of_queries ? in_.sequence_tokens() : in_.rows();
    const int64_t count = of_queries ? heads_.count : heads_.kv_count;
    SINTER_LET(value, allocate(call_.dims, call_.storage));
    std::vector<T> sums(static_cast<size_t>(value.view.volume()), T{0});
    const int64_t tokens = in_.sequence_tokens();
    SINTER_TRY(find_factors(of_values));
    for (int64_t sequence = 0; tokens > 0 && sequence < in_.tokens() / tokens; ++sequence)
      for (int64_t head = 0; head < heads_.count; ++head) {
        const int64_t own_head = of_queries ? head : head / heads_.group();
        for (int64_t row = 0; row < rows; ++row) {
          T* const sum = sums.data() + ((sequence * rows + row) * count + own_head) * width;
          add_products(sequence, head, row, of_queries, of_values, width, sum);
        }
      }
    const T by = of_values ? in_.dropped_scale() : scale_;
    for (T& sum : sums) sum *= by;
    store_run(sums.data(), value.view.volume(), call_.storage, value.out);
    return value.view;
  }

 private:
  /// P, or dS, of each head of each token and each key: [sequences, heads, tokens, keys].
  Status find_factors(bool probabilities) {
    factors_.assign(static_cast<size_t>(in_.tokens() * heads_.count * in_.rows()), T{0});
    seen_.assign(static_cast<size_t>(in_.tokens() * in_.rows()), false);
    return in_.for_each_head([&](int64_t token, int64_t head, SeenRows keys) {
      const int64_t place = in_.place_of_head(token, head), kv_head = head / heads_.group();
      for (int64_t j = 0; j < keys.count; ++j) {
        const int64_t row = keys.row(j);
        seen_[static_cast<size_t>(token * in_.rows() + row)] = true;
        const T dot =
            dot_of_steps(in_.query(token, head), in_.key(token, row, kv_head), heads_.width);
        const T tanh = tanh_of(dot);
        T factor = probability(dot, tanh, log_sums_[place], j);
        const bool keeps = in_.keeps(token, head, row);
        if (probabilities && !keeps) factor = 0;
        if (!probabilities) {
          factor = capped(factor, tanh);
          const T gradient =
              dot_of_steps(grad_ + (token * heads_.count + head) * heads_.value_width,
                           in_.value(token, row, kv_head), heads_.value_width);
          factor = of_logit(factor, difference(keeps, gradient, deltas_[place]));
        }
        factors_[static_cast<size_t>(place * in_.rows() + row)] = rounded(factor);
      }
    });
  }

  double tanh_of(double dot) const {
    return softcap_ == 0 ? 0 : std::tanh(dot * scale_ / softcap_);
  }
  float tanh_of(float dot) const { return attention_tanh(dot, scale_, softcap_); }
  double capped(double p, double tanh) const { return p * (1 - tanh * tanh); }
  float capped(float p, float tanh) const {
    return softcap_ == 0 ? p : capped_probability(p, tanh);
  }
  double probability(double dot, double tanh, double log_sum, int64_t j) const {
    if (log_sum == -INFINITY) return 0;
    const double score = softcap_ == 0 ? dot * scale_ : tanh * softcap_;
    return std::exp2(in_.masked(score, j) / std::log(2.0) - log_sum);
  }
  float probability(float dot, float tanh, float log_sum, int64_t j) const {
    const float mask = in_.has_mask() ? in_.mask(j) : 0;
    const float logit = !in_.has_mask()   ? capped_logit(dot, tanh, scale_, softcap_)
                        : in_.adds_mask() ? capped_logit(dot, tanh, scale_, softcap_, mask)
                                          : capped_logit(dot, tanh, scale_, softcap_, mask == 0);
    return attention_probability(logit, probability_shift(log_sum), factor_);
  }
  /// dP - delta.
  double difference(bool keeps, double gradient, double delta) const {
    return (keeps ? gradient * in_.dropped_scale() : 0) - delta;
  }
  float difference(bool keeps, float gradient, float delta) const {
    return in_.has_dropout() ? dropped_difference(keeps, gradient, in_.dropped_scale(), delta)
                             : math::sub(gradient, delta);
  }
  double of_logit(double p, double difference) const { return p == 0 ? 0 : p * difference; }
  float of_logit(float p, float difference) const {
    return logit_gradient(p, difference, in_.has_mask());
  }
  double rounded(double x) const { return x; }
  float rounded(float x) const { return rounded_to_16_bits(x, call_.operand_type(0).dtype); }

  /// Adds to `sum` what a query head's factors say of a row, a token or a key.
  void add_products(int64_t sequence, int64_t head, int64_t row, bool of_query, bool of_value,
                    int64_t width, T* sum) const {
    const int64_t tokens = in_.sequence_tokens(), keys = in_.rows();
    const int64_t others = of_query ? keys : tokens, kv_head = head / heads_.group();
    const T* const of_head = factors_.data() + (sequence * heads_.count + head) * tokens * keys;
    const auto factor = [&](int64_t other) {
      return of_query ? of_head[row * keys + other] : of_head[other * keys + row];
    };
    // 0 for a key that a token does not see, and for that token, whatever their values.
    const auto element = [&](int64_t other, int64_t i) {
      const int64_t token = sequence * tokens + (of_query ? row : other);
      if (!seen_[static_cast<size_t>(token * keys + (of_query ? other : row))]) return T{0};
      if (of_query) return in_.key(token, other, kv_head)[i];
      return of_value ? grad_[(token * heads_.count + head) * width + i]
                      : in_.query(token, head)[i];
    };
    for (int64_t i = 0; i < width; ++i) add_steps(sum[i], others, factor, element, i);
  }
  template <typename Factor, typename Element>
  static void add_steps(double& sum, int64_t others, const Factor& factor, const Element& element,
                        int64_t i) {
    for (int64_t other = 0; other < others; ++other) sum += factor(other) * element(other, i);
  }
  template <typename Factor, typename Element>
  static void add_steps(float& sum, int64_t others, const Factor& factor, const Element& element,
                        int64_t i) {
    for (int64_t step = 0; step < others; step += kTensorCoreStep)
      sum = multiply_step(
          sum, [&](int64_t e) { return factor(step + e); },
          [&](int64_t e) { return element(step + e, i); },
          std::min(kTensorCoreStep, others - step));
  }

  const OpCall& call_;
  AttentionCall<T> in_;
  AttentionHeads heads_;
  std::vector<T> grad_scratch_, log_sum_scratch_, delta_scratch_;
  const T *grad_, *log_sums_, *deltas_;
  T scale_, softcap_;
  float factor_;
  std::vector<T> factors_;
  std::vector<bool> seen_;  // [tokens, keys]
};

Result<HostView> evaluate_gradient(const OpCall& call) {
  return call.options.precise ? AttentionGradients<double>(call).run()
                              : AttentionGradients<float>(call).run();
}

}  // namespace

Result<HostView> evaluate_attention_query_gradient(const OpCall& call) {
  return evaluate_gradient(call);
}
Result<HostView> evaluate_attention_key_gradient(const OpCall& call) {
  return evaluate_gradient(call);
}
Result<HostView> evaluate_attention_value_gradient(const OpCall& call) {
  return evaluate_gradient(call);
}

}  // namespace sinter
