// decode_attention in the order of kernels/decode_attention/order.h; in precise evaluation the same
// sums in float64.
#include <algorithm>
#include <cmath>

#include "ir/optional_attribute.h"
#include "kernels/decode_attention/order.h"
#include "runtime/evaluate/attention_call.h"

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
  using SeenRows = typename AttentionCall<T>::SeenRows;

 public:
  explicit DecodeAttention(const OpCall& call)
      : in_(call),
        heads_(in_.heads()),
        lanes_(
            attention_lanes(static_cast<int>(heads_.width), static_cast<int>(heads_.value_width))),
        splits_(static_cast<int>(call.op.attrs.get<int64_t>(AttrName::splits))),
        streams_(integer_or(call.op.attrs, AttrName::streams, attention_most_streams(lanes_))),
        scale_(static_cast<T>(in_.number(AttrName::scale))),
        softcap_(static_cast<T>(in_.number(AttrName::softcap))) {}

  Result<HostView> run() {
    return in_.evaluate([&](int64_t token, int64_t head, SeenRows seen) {
      Partial<T> joined = attend({token, head, seen}, {0, seen.count});
      const T by = joined.weights;
      for (T& element : joined.values) element = in_.empty_zero() && by == 0 ? T{0} : element / by;
      return joined.values;
    });
  }

 private:
  struct Query {
    int64_t token, head;
    SeenRows seen;
  };

  Partial<T> attend(const Query& q, AttentionRange keys) const {
    std::vector<Partial<T>> partials;
    for (int split = 0; split < splits_; ++split)
      partials.push_back(attend_split(q, attention_split(keys, splits_, split)));
    return join_splits(partials, heads_.value_width);
  }

  Partial<T> attend_split(const Query& q, AttentionRange keys) const {
    const int neighbours = attention_neighbours(lanes_);
    const int64_t blocks = (keys.count + kAttentionBlock - 1) / kAttentionBlock;
    const int64_t used = (blocks + neighbours - 1) / neighbours * neighbours;
    std::vector<Partial<T>> streams(static_cast<size_t>(std::min(used, streams_)),
                                    Partial<T>(heads_.value_width));
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t begin = block * kAttentionBlock;
      add_block(streams[static_cast<size_t>(block) % streams.size()], q, keys.low + begin,
                std::min<int64_t>(kAttentionBlock, keys.count - begin));
    }
    return join_streams(streams, static_cast<size_t>(neighbours), heads_.value_width);
  }

  /// Adds the keys key .. key + count - 1 of those that the token sees.
  void add_block(Partial<T>& stream, const Query& q, int64_t key, int64_t count) const {
    T scores[kAttentionBlock];
    T largest = stream.largest;
    const int64_t kv_head = q.head / heads_.group();
    for (int64_t u = 0; u < count; ++u) {
      scores[u] = score(q, key + u, kv_head);
      largest = larger(largest, scores[u]);
    }
    stream.scale(weight_of(stream.largest, largest));
    stream.largest = largest;
    for (int64_t u = 0; u < count; ++u) {
      const T p = weight_of(scores[u], largest);
      const T* v = in_.value(q.token, q.seen.row(key + u), kv_head);
      for (int64_t i = 0; i < heads_.value_width; ++i)
        stream.values[i] = multiply_add(p, v[i], stream.values[i]);
      stream.weights += p;
    }
  }

  T score(const Query& q, int64_t key, int64_t kv_head) const {
    const T dot = dot_product(in_.query(q.token, q.head),
                              in_.key(q.token, q.seen.row(key), kv_head), heads_.width, lanes_);
    return in_.masked(score_of(dot, scale_, softcap_), key);
  }

  AttentionCall<T> in_;
  AttentionHeads heads_;
  int lanes_, splits_;
  int64_t streams_;
  T scale_, softcap_;
};

}  // namespace

Result<HostView> evaluate_decode_attention(const OpCall& call) {
  return call.options.precise ? DecodeAttention<double>(call).run()
                              : DecodeAttention<float>(call).run();
}

}  // namespace sinter
