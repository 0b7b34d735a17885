// Attention in float64, for tests of the ops that compute it.
#pragma once

#include <algorithm>
#include <cmath>

#include "runtime/eval_case.h"

namespace sinter {

/// An attention over caches of so many rows.
struct AttentionCase {
  int64_t heads, kv_heads, width, value_width;
  double scale;
  double softcap = 0;  // 0: none
  int64_t window = 0;  // 0: none

  std::string parameters(DType dtype, int64_t rows) const {
    return fmt::format(
        "%q: {0}[N, {1}], %k: {0}[{4}, {2}], %v: {0}[{4}, {3}], %f: i32[N], %l: i32[N]",
        to_string(dtype), heads * width, kv_heads * width, kv_heads * value_width, rows);
  }
  std::string attrs() const {
    std::string text =
        fmt::format("heads = {}, kv_heads = {}, scale = {:a}", heads, kv_heads, scale);
    if (softcap > 0) text += fmt::format(", softcap = {:a}", softcap);
    if (window > 0) text += fmt::format(", window = {}", window);
    return text;
  }
  /// `algorithm`: "attention", or an order of it; `more`: attributes of the order, ", splits = 2".
  Module module(std::string_view algorithm, DType dtype, int64_t rows,
                std::string_view more = "") const {
    return module_of(
        parameters(dtype, rows),
        fmt::format("%y = attention %q, %k, %v, %f, %l {{{}{}{}}} : {}[N, {}]",
                    order_text(algorithm), attrs(), more, to_string(dtype), heads * value_width));
  }
};

/// The tensors of a case, widened.
struct AttentionValues {
  std::vector<double> q, k, v, first, last;

  /// `inputs`: in the order of AttentionCase::parameters.
  explicit AttentionValues(const std::vector<HostTensor>& inputs)
      : q(values_of(inputs[0])),
        k(values_of(inputs[1])),
        v(values_of(inputs[2])),
        first(values_of(inputs[3])),
        last(values_of(inputs[4])) {}

  /// Keys that a token sees: low .. last.
  int64_t low(const AttentionCase& c, int64_t token) const {
    const double low =
        c.window > 0 ? last[token] - static_cast<double>(c.window) + 1 : first[token];
    return static_cast<int64_t>(std::max(first[token], low));
  }
  int64_t count(const AttentionCase& c, int64_t token) const {
    return std::max<int64_t>(0, static_cast<int64_t>(last[token]) - low(c, token) + 1);
  }
  double term(const AttentionCase& c, int64_t token, int64_t head, int64_t row, int64_t i) const {
    const int64_t kv_head = head / (c.heads / c.kv_heads);
    return q[(token * c.heads + head) * c.width + i] *
           k[(row * c.kv_heads + kv_head) * c.width + i];
  }
  double score(const AttentionCase& c, int64_t token, int64_t head, int64_t row) const {
    double dot = 0;
    for (int64_t i = 0; i < c.width; ++i) dot += term(c, token, head, row, i);
    return c.softcap > 0 ? c.softcap * std::tanh(dot * c.scale / c.softcap) : dot * c.scale;
  }
};

}  // namespace sinter
