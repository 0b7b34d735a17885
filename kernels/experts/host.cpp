// expert_linear in the order of kernels/experts/order.h; in precise evaluation in float64.
#include <algorithm>

#include "ir/integers.h"
#include "ir/row_numbers.h"
#include "kernels/experts/order.h"
#include "runtime/evaluate/ops.h"
#include "runtime/evaluate/packed_sum.h"
#include "runtime/evaluate/vector_clones.h"

namespace sinter {
namespace {

/// The sum of `length` products.
template <typename T>
SINTER_VECTOR_CLONES T element_of(const T* w, const T* x, int64_t length) {
  T lanes[kExpertLanes] = {};
  constexpr int64_t kRound = int64_t{kExpertLanes} * kExpertChunk;
  for (int64_t begin = 0; begin < length; begin += kRound)
    for (int64_t e = 0; e < kExpertChunk; ++e)
      for (int64_t lane = 0; lane < kExpertLanes; ++lane) {
        const int64_t at = begin + lane * kExpertChunk + e;
        if (at < length) lanes[lane] = math::fma(w[at], x[at], lanes[lane]);
      }
  for (int stride = 1; stride < kExpertLanes; stride *= 2)
    for (int lane = 0; lane < kExpertLanes; lane += 2 * stride)
      lanes[lane] = lanes[lane] + lanes[lane + stride];
  return lanes[0];
}
template float element_of(const float*, const float*, int64_t);
template double element_of(const double*, const double*, int64_t);

template <typename T>
Result<HostView> multiply(const OpCall& call) {
  const bool packed = call.op.attrs.has(AttrName::codes);
  const CodeFormat format = packed ? code_format(call.op.attrs) : CodeFormat();
  std::vector<T> x_scratch, w_scratch;
  std::vector<int32_t> number_scratch, code_scratch;
  const T* dense_x = dense_elements(call.operands[0], x_scratch);
  const T* w = packed ? nullptr : dense_elements(call.operands[1], w_scratch);
  const int32_t* codes = packed ? dense_elements(call.operands[1], code_scratch) : nullptr;
  const int32_t* experts = dense_elements(call.operands[2], number_scratch);
  const int64_t matrices = call.operands[1].dims[0], words = call.operands[1].dims[2];
  const int64_t pairs = call.dims[0] * call.dims[1], rows = call.dims[2];
  const int64_t of_row = call.operands[0].dims.size() == 2 ? call.dims[1] : 1;
  // Pads the rows of x to whole chunks: rows of codes have whole chunks.
  const int64_t length = call.operands[0].dims.back();
  const int64_t chunks = ceil_div(length, int64_t{kExpertChunk}), stride = chunks * kExpertChunk;
  std::vector<T> x(static_cast<size_t>(call.operands[0].volume() / length * stride));
  for (int64_t at = 0; at * length < call.operands[0].volume(); ++at)
    std::copy_n(dense_x + at * length, length, x.begin() + at * stride);
  SINTER_LET(value, allocate(call.dims, call.storage));
  std::vector<T> sums(static_cast<size_t>(pairs * rows));
  std::vector<std::vector<int64_t>> pairs_of(static_cast<size_t>(matrices));
  for (int64_t pair = 0; pair < pairs; ++pair) {
    if (experts[pair] >= 0 && experts[pair] < matrices)
      pairs_of[static_cast<size_t>(experts[pair])].push_back(pair);
    else if (!is_checked(call.op))
      return call.error(fmt::format("expert {} at position {} is not one of the {}", experts[pair],
                                    pair, matrices),
                        "check the inputs");
  }
  UnpackedRow<T> unpacked;
  for (int64_t expert = 0; expert < matrices; ++expert) {
    const std::vector<int64_t>& own = pairs_of[static_cast<size_t>(expert)];
    for (int64_t m = 0; m < rows && !own.empty(); ++m) {
      const int64_t at = expert * rows + m;
      if (packed)
        unpacked.read(format, stride, reinterpret_cast<const std::byte*>(codes + at * words));
      for (int64_t pair : own) {
        const T* row = &x[static_cast<size_t>(pair / of_row * stride)];
        sums[static_cast<size_t>(pair * rows + m)] =
            packed ? packed_split_sum(unpacked, format.group, row, 0, chunks)
                   : element_of(w + at * length, row, length);
      }
    }
  }
  store_run(sums.data(), pairs * rows, call.storage, value.out);
  return value.view;
}

}  // namespace

Result<HostView> evaluate_expert_linear(const OpCall& call) {
  return call.options.precise ? multiply<double>(call) : multiply<float>(call);
}

}  // namespace sinter
