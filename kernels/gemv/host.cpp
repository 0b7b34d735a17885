// gemv in the order of kernels/gemv/order.h; in precise evaluation the same sums in float64.
#include <algorithm>

#include "ir/reduction_order.h"
#include "kernels/gemv/order.h"
#include "runtime/evaluate/linear_rows.h"
#include "runtime/evaluate/vector_clones.h"

namespace sinter {
namespace {

inline float accumulate(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double accumulate(double a, double b, double c) { return a * b + c; }

/// One split of one row: `chunks` chunks of 8 elements.
template <typename T>
SINTER_VECTOR_CLONES T split_sum(const T* w, const T* x, int64_t chunks) {
  T lane[kGemvLanes] = {};
  for (int64_t c = 0; c < chunks; c += kGemvLanes) {
    const int64_t lanes = std::min<int64_t>(kGemvLanes, chunks - c);
    for (int64_t e = 0; e < kChunk; ++e)
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t at = (c + l) * kChunk + e;
        lane[l] = accumulate(w[at], x[at], lane[l]);
      }
  }
  for (int stride = 1; stride < kGemvLanes; stride *= 2)
    for (int l = 0; l < kGemvLanes; l += 2 * stride) lane[l] = lane[l] + lane[l + stride];
  return lane[0];
}
template float split_sum(const float*, const float*, int64_t);
template double split_sum(const double*, const double*, int64_t);

template <typename T>
void multiply_rows(const OpCall& call, std::byte* out) {
  const auto splits = static_cast<int>(call.op.attrs.get<int64_t>(AttrName::splits));
  const auto sum_of_splits = [&](const T* x, const T* w, int64_t length) {
    const int64_t chunks = length / kChunk, share = split_chunks(chunks, splits);
    T sum = 0;
    for (int64_t s = 0; s < splits; ++s) {
      const int64_t begin = std::min(s * share, chunks), end = std::min(begin + share, chunks);
      const T own = split_sum(w + begin * kChunk, x + begin * kChunk, end - begin);
      sum = s == 0 ? own : sum + own;
    }
    return sum;
  };
  evaluate_linear_rows<T>(call, sum_of_splits, out);
}

}  // namespace

Result<HostView> evaluate_gemv(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  if (value.view.volume() > 0)
    (call.options.precise ? multiply_rows<double> : multiply_rows<float>)(call, value.out);
  return value.view;
}

}  // namespace sinter
