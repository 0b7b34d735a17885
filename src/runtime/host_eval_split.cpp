// attention_split and attention_merge in the order of ir/attention_order.h; in precise evaluation
// the same sums in float64.
#include <algorithm>
#include <cmath>

#include "ir/attention_order.h"
#include "runtime/host_eval_ops.h"

namespace sinter {
namespace {

double score_of(double dot, double scale, double softcap) {
  const double score = dot * scale;
  return softcap == 0 ? score : std::tanh(score / softcap) * softcap;
}
float score_of(float dot, float scale, float softcap) { return attention_score(dot, scale, softcap); }
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
  T lane[kMostHeadWidth / 8] = {};
  for (int64_t c = 0; 8 * c < width; ++c) {
    // Elements behind the end are zeros that take part: adding +0 turns a -0 into +0.
    for (int64_t e = 0; e < 8; ++e) {
      const bool inside = 8 * c + e < width;
      lane[c] = multiply_add(inside ? q[8 * c + e] : T{0}, inside ? k[8 * c + e] : T{0}, lane[c]);
    }
  }
  for (int stride = 1; stride < lanes; stride *= 2)
    for (int l = 0; l < lanes; l += 2 * stride) lane[l] = lane[l] + lane[l + stride];
  return lane[0];
}

/// A running softmax-weighted sum: elements, then the maximum, then the sum of weights, as stored.
template <typename T>
struct Part {
  explicit Part(int64_t width) : sums(static_cast<size_t>(width + 2), T{0}) { max() = -INFINITY; }
  T& max() { return sums[sums.size() - 2]; }
  T max() const { return sums[sums.size() - 2]; }
  std::vector<T> sums;
};

template <typename T>
Part<T> join(const std::vector<Part<T>>& parts, int64_t width) {
  Part<T> joined(width);
  T largest = parts[0].max();
  for (size_t j = 1; j < parts.size(); ++j) largest = larger(largest, parts[j].max());
  for (size_t i = 0; i < joined.sums.size(); ++i) {
    if (static_cast<int64_t>(i) == width) continue;
    T total = 0;
    for (const Part<T>& part : parts)
      total = multiply_add(weight_of(part.max(), largest), part.sums[i], total);
    joined.sums[i] = total;
  }
  joined.max() = largest;
  return joined;
}

template <typename T>
class Split {
 public:
  explicit Split(const OpCall& call)
      : call_(call),
        attrs_(call.op.attrs),
        q_(dense_elements(call.operands[0], q_scratch_)),
        keys_(dense_elements(call.operands[1], keys_scratch_)),
        values_(dense_elements(call.operands[2], values_scratch_)),
        first_(dense_elements(call.operands[3], first_scratch_)),
        last_(dense_elements(call.operands[4], last_scratch_)) {
    const int64_t heads = attrs_.get<int64_t>(AttrName::heads);
    kv_heads_ = attrs_.get<int64_t>(AttrName::kv_heads);
    group_ = heads / kv_heads_;
    width_ = call.operands[1].dims[1] / kv_heads_;
    value_width_ = call.operands[2].dims[1] / kv_heads_;
    lanes_ = attention_lanes(static_cast<int>(width_), static_cast<int>(value_width_));
    scale_ = static_cast<T>(attrs_.get<double>(AttrName::scale));
    if (const AttrValue* cap = attrs_.find(AttrName::softcap)) softcap_ = static_cast<T>(std::get<double>(*cap));
    if (const AttrValue* window = attrs_.find(AttrName::window)) window_ = std::get<int64_t>(*window);
  }

  Result<HostView> run() {
    SINTER_LET(value, allocate(call_.dims, call_.storage));
    const int64_t rows = call_.operands[1].dims[0], heads = kv_heads_ * group_;
    const auto splits = static_cast<int>(call_.dims[2]);
    std::byte* out = value.out;
    for (int64_t n = 0; n < call_.dims[0]; ++n) {
      if (first_[n] <= last_[n] && (first_[n] < 0 || last_[n] >= rows))
        return call_.error(fmt::format("token {} sees rows {} .. {} of 0 .. {}", n, first_[n], last_[n], rows - 1),
                           "check the inputs");
      const AttentionRange all = attention_range(first_[n], last_[n], window_);
      for (int64_t head = 0; head < heads; ++head)
        for (int s = 0; s < splits; ++s) {
          const Part<T> part = attend(q_ + (n * heads + head) * width_, head / group_, attention_part(all, splits, s));
          const auto count = static_cast<int64_t>(part.sums.size());
          store_run(part.sums.data(), count, call_.storage, out);
          out += count * size_bytes(call_.storage);
        }
    }
    return value.view;
  }

 private:
  Part<T> attend(const T* q, int64_t kv_head, AttentionRange keys) const {
    std::vector<Part<T>> streams(kAttentionStreams, Part<T>(value_width_));
    for (int64_t begin = 0, block = 0; begin < keys.count; begin += kAttentionBlock, ++block)
      add_block(streams[static_cast<size_t>(block % kAttentionStreams)], q, kv_head, keys.low + begin,
                std::min<int64_t>(kAttentionBlock, keys.count - begin));
    return join(streams, value_width_);
  }

  void add_block(Part<T>& stream, const T* q, int64_t kv_head, int64_t row, int64_t count) const {
    T scores[kAttentionBlock];
    T largest = stream.max();
    for (int64_t u = 0; u < count; ++u) {
      const T dot = dot_product(q, keys_ + (row + u) * kv_heads_ * width_ + kv_head * width_, width_, lanes_);
      scores[u] = score_of(dot, scale_, softcap_);
      largest = larger(largest, scores[u]);
    }
    const T scale = weight_of(stream.max(), largest);
    for (T& sum : stream.sums) sum *= scale;
    stream.max() = largest;
    for (int64_t u = 0; u < count; ++u) {
      const T p = weight_of(scores[u], largest);
      const T* v = values_ + (row + u) * kv_heads_ * value_width_ + kv_head * value_width_;
      for (int64_t i = 0; i < value_width_; ++i) stream.sums[i] = multiply_add(p, v[i], stream.sums[i]);
      stream.sums.back() += p;
    }
  }

  const OpCall& call_;
  const Attributes& attrs_;
  std::vector<T> q_scratch_, keys_scratch_, values_scratch_;
  std::vector<int32_t> first_scratch_, last_scratch_;
  const T *q_, *keys_, *values_;
  const int32_t *first_, *last_;
  int64_t kv_heads_ = 0, group_ = 0, width_ = 0, value_width_ = 0, window_ = 0;
  int lanes_ = 1;
  T scale_ = 0, softcap_ = 0;
};

template <typename T>
Result<HostView> merge(const OpCall& call) {
  std::vector<T> scratch;
  const T* parts = dense_elements(call.operands[0], scratch);
  const int64_t splits = call.operands[0].dims[2], width = call.operands[0].dims[3] - 2;
  const int64_t rows = call.operands[0].dims[0] * call.operands[0].dims[1];
  SINTER_LET(value, allocate(call.dims, call.storage));
  std::vector<T> out(static_cast<size_t>(width));
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<Part<T>> split(static_cast<size_t>(splits), Part<T>(width));
    for (int64_t s = 0; s < splits; ++s) {
      const T* from = parts + (row * splits + s) * (width + 2);
      std::copy(from, from + width + 2, split[static_cast<size_t>(s)].sums.begin());
    }
    const Part<T> joined = join(split, width);
    for (int64_t i = 0; i < width; ++i) out[static_cast<size_t>(i)] = joined.sums[static_cast<size_t>(i)] / joined.sums.back();
    store_run(out.data(), width, call.storage, value.out + row * width * size_bytes(call.storage));
  }
  return value.view;
}

}  // namespace

Result<HostView> eval_attention_split(const OpCall& call) {
  return call.options.precise ? Split<double>(call).run() : Split<float>(call).run();
}

Result<HostView> eval_attention_merge(const OpCall& call) {
  return call.options.precise ? merge<double>(call) : merge<float>(call);
}

}  // namespace sinter
