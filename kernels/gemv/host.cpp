// gemv in the order of kernels/gemv/order.h; in precise evaluation the same sums in float64.
#include <algorithm>

#include "ir/reduction_order.h"
#include "kernels/gemv/order.h"
#include "runtime/evaluate/linear_rows.h"
#include "runtime/evaluate/packed_product.h"
#include "runtime/evaluate/packed_sum.h"
#include "runtime/evaluate/vector_clones.h"

namespace sinter {
namespace {

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

template <typename T>
void multiply_packed_rows(const OpCall& call, std::byte* out) {
  const PackedProduct<T> product(call);
  const auto splits = static_cast<int>(call.op.attrs.get<int64_t>(AttrName::splits));
  const int64_t chunks = product.length / kChunk;
  const int64_t share = split_chunks(
      chunks, splits, static_cast<int>(product.format.layout().step_length() / kChunk));
  UnpackedRow<T> row;
  std::vector<T> sums(static_cast<size_t>(product.tokens * product.rows));
  for (int64_t m = 0; m < product.rows; ++m) {
    product.read(row, m);
    for (int64_t n = 0; n < product.tokens; ++n) {
      const T* x = product.x + n * product.length;
      T sum = 0;
      for (int64_t s = 0; s < splits; ++s) {
        const int64_t begin = std::min(s * share, chunks), end = std::min(begin + share, chunks);
        const T own = packed_split_sum(row, product.format.group, x, begin, end);
        sum = s == 0 ? own : sum + own;
      }
      sums[static_cast<size_t>(n * product.rows + m)] = product.with_bias(sum, m);
    }
  }
  store_run(sums.data(), product.tokens * product.rows, call.storage, out);
}

}  // namespace

Result<HostView> evaluate_quantized_linear(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  if (value.view.volume() > 0)
    (call.options.precise ? multiply_packed_rows<double> : multiply_packed_rows<float>)(call,
                                                                                        value.out);
  return value.view;
}

Result<HostView> evaluate_gemv(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  if (value.view.volume() > 0)
    (call.options.precise ? multiply_rows<double> : multiply_rows<float>)(call, value.out);
  return value.view;
}

}  // namespace sinter
