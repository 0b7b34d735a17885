// decode_attention in the order of kernels/decode_attention/order.h; in precise evaluation the same
// sums in float64.
#include <algorithm>
#include <cmath>

#include "ir/attention_heads.h"
#include "ir/row_numbers.h"
#include "kernels/decode_attention/order.h"
#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

double score_of(double dot, double scale, double softcap) {
  const double score = dot * scale;
  return softcap == 0 ? score : std::tanh(score / softcap) * softcap;
}
float score_of(float dot, float scale, float softcap) {
  return attention_score(dot, scale, softcap);
}
double weight_of(double from, double to) { return from == -INFINITY ? 0 : std::exp(from - to); }
float weight_of(float from, float to) { return attention_weight(from, to); }
float multiply_add(float a, float b, float c) { return math::fma(a, b, c); }
double multiply_add(double a, double b, double c) { return a * b + c; }
template <typename T>
T larger(T a, T b) {
  if constexpr (std::is_same_v<T, float>) return math::maximum(a, b);
  return a != a || b != b ? NAN : std::max(a, b);
}

/// q·k by chunks and lanes.
template <typename T>
T dot_product(const T* q, const T* k, int64_t width, int lanes) {
  T lane[kMaxHeadWidth / 8] = {};
  for (int64_t c = 0; 8 * c < width; ++c) {
    // Elements after the end are zeros that take part: adding +0 turns a -0 into +0.
    for (int64_t e = 0; e < 8; ++e) {
      const bool inside = 8 * c + e < width;
      lane[c] = multiply_add(inside ? q[8 * c + e] : T{0}, inside ? k[8 * c + e] : T{0}, lane[c]);
    }
  }
  for (int stride = 1; stride < lanes; stride *= 2)
    for (int l = 0; l < lanes; l += 2 * stride) lane[l] = lane[l] + lane[l + stride];
  return lane[0];
}

/// A running softmax-weighted sum of values.
template <typename T>
struct Partial {
  explicit Partial(int64_t width) : values(static_cast<size_t>(width), T{0}) {}
  void scale(T by) {
    for (T& value : values) value *= by;
    weights *= by;
  }
  void add(const Partial& other) {
    for (size_t i = 0; i < values.size(); ++i) values[i] += other.values[i];
    weights += other.weights;
  }
  void add(T scale, const Partial& other) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = multiply_add(scale, other.values[i], values[i]);
    weights = multiply_add(scale, other.weights, weights);
  }
  std::vector<T> values;
  T largest = -INFINITY, weights = 0;
};

template <typename T>
T largest_of(const std::vector<Partial<T>>& partials) {
  T largest = -INFINITY;
  for (const Partial<T>& partial : partials) largest = larger(largest, partial.largest);
  return largest;
}

/// `streams`: a multiple of `neighbours`; others, without keys, would add +0.
template <typename T>
Partial<T> join_streams(std::vector<Partial<T>>& streams, size_t neighbours, int64_t width) {
  Partial<T> joined(width);
  joined.largest = largest_of(streams);
  for (Partial<T>& stream : streams) stream.scale(weight_of(stream.largest, joined.largest));
  for (size_t first = 0; first < streams.size(); first += neighbours) {
    for (size_t stride = 1; stride < neighbours; stride *= 2)
      for (size_t j = first; j < first + neighbours; j += 2 * stride)
        streams[j].add(streams[j + stride]);
    joined.add(streams[first]);
  }
  return joined;
}

template <typename T>
Partial<T> join_splits(const std::vector<Partial<T>>& splits, int64_t width) {
  Partial<T> joined(width);
  joined.largest = largest_of(splits);
  for (const Partial<T>& split : splits)
    joined.add(weight_of(split.largest, joined.largest), split);
  return joined;
}

template <typename T>
class DecodeAttention {
 public:
  explicit DecodeAttention(const OpCall& call)
      : call_(call),
        attrs_(call.op.attrs),
        q_(dense_elements(call.operands[0], q_scratch_)),
        keys_(dense_elements(call.operands[1], keys_scratch_)),
        values_(dense_elements(call.operands[2], values_scratch_)),
        first_(dense_elements(call.operands[3], first_scratch_)),
        last_(dense_elements(call.operands[4], last_scratch_)) {
    const AttentionHeads heads =
        attention_heads(attrs_, call.operand_type(1), call.operand_type(2));
    kv_heads_ = heads.kv_count;
    group_ = heads.group();
    width_ = heads.width;
    value_width_ = heads.value_width;
    splits_ = static_cast<int>(attrs_.get<int64_t>(AttrName::splits));
    lanes_ = attention_lanes(static_cast<int>(width_), static_cast<int>(value_width_));
    scale_ = static_cast<T>(attrs_.get<double>(AttrName::scale));
    if (const AttrValue* cap = attrs_.find(AttrName::softcap))
      softcap_ = static_cast<T>(std::get<double>(*cap));
    if (const AttrValue* window = attrs_.find(AttrName::window))
      window_ = std::get<int64_t>(*window);
  }

  Result<HostView> run() {
    SINTER_LET(value, allocate(call_.dims, call_.storage));
    const int64_t rows = call_.operands[1].dims[0], heads = kv_heads_ * group_;
    std::byte* out = value.out;
    for (int64_t n = 0; n < call_.dims[0]; ++n) {
      const bool checked = is_checked(call_.op);
      if (!checked && first_[n] <= last_[n] && (first_[n] < 0 || last_[n] >= rows))
        return call_.error(
            fmt::format("token {} sees rows {} .. {} of 0 .. {}", n, first_[n], last_[n], rows - 1),
            "check the inputs");
      AttentionRange all = attention_range(first_[n], last_[n], window_);
      if (checked) all = rows_of_cache(all, rows);
      for (int64_t head = 0; head < heads; ++head) {
        Partial<T> joined = attend(q_ + (n * heads + head) * width_, head / group_, all);
        for (T& element : joined.values) element /= joined.weights;
        store_run(joined.values.data(), value_width_, call_.storage, out);
        out += value_width_ * whole_bytes(call_.storage);
      }
    }
    return value.view;
  }

 private:
  Partial<T> attend(const T* q, int64_t kv_head, AttentionRange keys) const {
    std::vector<Partial<T>> partials;
    for (int split = 0; split < splits_; ++split)
      partials.push_back(attend_split(q, kv_head, attention_split(keys, splits_, split)));
    return join_splits(partials, value_width_);
  }

  Partial<T> attend_split(const T* q, int64_t kv_head, AttentionRange keys) const {
    const int neighbours = attention_neighbours(lanes_);
    const int64_t blocks = (keys.count + kAttentionBlock - 1) / kAttentionBlock;
    const int64_t used = (blocks + neighbours - 1) / neighbours * neighbours;
    std::vector<Partial<T>> streams(
        static_cast<size_t>(std::min<int64_t>(used, attention_streams(lanes_))),
        Partial<T>(value_width_));
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t begin = block * kAttentionBlock;
      add_block(streams[static_cast<size_t>(block) % streams.size()], q, kv_head, keys.low + begin,
                std::min<int64_t>(kAttentionBlock, keys.count - begin));
    }
    return join_streams(streams, static_cast<size_t>(neighbours), value_width_);
  }

  void add_block(Partial<T>& stream, const T* q, int64_t kv_head, int64_t row,
                 int64_t count) const {
    T scores[kAttentionBlock];
    T largest = stream.largest;
    for (int64_t u = 0; u < count; ++u) {
      const T dot =
          dot_product(q, keys_ + (row + u) * kv_heads_ * width_ + kv_head * width_, width_, lanes_);
      scores[u] = score_of(dot, scale_, softcap_);
      largest = larger(largest, scores[u]);
    }
    stream.scale(weight_of(stream.largest, largest));
    stream.largest = largest;
    for (int64_t u = 0; u < count; ++u) {
      const T p = weight_of(scores[u], largest);
      const T* v = values_ + (row + u) * kv_heads_ * value_width_ + kv_head * value_width_;
      for (int64_t i = 0; i < value_width_; ++i)
        stream.values[i] = multiply_add(p, v[i], stream.values[i]);
      stream.weights += p;
    }
  }

  const OpCall& call_;
  const Attributes& attrs_;
  std::vector<T> q_scratch_, keys_scratch_, values_scratch_;
  std::vector<int32_t> first_scratch_, last_scratch_;
  const T *q_, *keys_, *values_;
  const int32_t *first_, *last_;
  int64_t kv_heads_ = 0, group_ = 0, width_ = 0, value_width_ = 0, window_ = 0;
  int lanes_ = 1, splits_ = 1;
  T scale_ = 0, softcap_ = 0;
};

}  // namespace

Result<HostView> evaluate_decode_attention(const OpCall& call) {
  return call.options.precise ? DecodeAttention<double>(call).run()
                              : DecodeAttention<float>(call).run();
}

}  // namespace sinter
