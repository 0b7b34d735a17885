#include "support/custom_ops.h"

#include <cmath>
#include <vector>

#include "ir/scalar_math.h"

namespace sinter::test {
namespace {

constexpr const char* kNormSource = R"(// Root mean square over a row, by 256 threads.
template <typename X, typename W, typename Y>
__device__ void test_norm(X x, W w, Y y, const SinterCustom& at) {
  __shared__ float sums[8];
  const int thread = static_cast<int>(threadIdx.x);
  const long long length = at.dims(1, 0), first = at.row * length;
  float sum = 0.0f;
  for (long long i = thread; i < length; i += 256) {
    const float v = x(first + i);
    sum = math::add(sum, math::mul(v, v));
  }
  for (int stride = 1; stride < 32; stride *= 2)
    sum = math::add(sum, __shfl_xor_sync(0xffffffffu, sum, stride));
  if (thread % 32 == 0) sums[thread / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < 8; ++warp) total = math::add(total, sums[warp]);
  const float mean = math::div(total, static_cast<float>(length));
  const float scale = math::rsqrt(math::add(mean, static_cast<float>(at.number(0))));
  for (long long i = thread; i < length; i += 256)
    y.set(first + i, math::mul(math::mul(x(first + i), scale), w(i)));
}
)";

int64_t volume_of(const std::vector<int64_t>& dims) {
  int64_t volume = 1;
  for (int64_t extent : dims) volume *= extent;
  return volume;
}

/// The sum of squares in the kernel's order.
float squares(const float* x, int64_t length) {
  float lanes[256] = {}, total = 0;
  for (int64_t i = 0; i < length; ++i)
    lanes[i % 256] = math::add(lanes[i % 256], math::mul(x[i], x[i]));
  for (int warp = 0; warp < 8; ++warp) {
    float* values = lanes + 32 * warp;
    for (int stride = 1; stride < 32; stride *= 2) {
      float sums[32];
      for (int lane = 0; lane < 32; ++lane)
        sums[lane] = math::add(values[lane], values[lane ^ stride]);
      std::copy(sums, sums + 32, values);
    }
    total = math::add(total, values[0]);
  }
  return total;
}

bool evaluate_norm(const CustomOpCall& call) {
  const int64_t length = call.operands[1].dims[0];
  const int64_t rows = length == 0 ? 0 : volume_of(call.result_dims) / length;
  for (int64_t row = 0; row < rows; ++row) {
    if (call.precise) {
      const auto* x = static_cast<const double*>(call.operands[0].data) + row * length;
      const auto* w = static_cast<const double*>(call.operands[1].data);
      auto* y = static_cast<double*>(call.result) + row * length;
      double sum = 0;
      for (int64_t i = 0; i < length; ++i) sum += x[i] * x[i];
      const double scale = 1 / std::sqrt(sum / static_cast<double>(length) + call.numbers[0]);
      for (int64_t i = 0; i < length; ++i) y[i] = x[i] * scale * w[i];
      continue;
    }
    const auto* x = static_cast<const float*>(call.operands[0].data) + row * length;
    const auto* w = static_cast<const float*>(call.operands[1].data);
    auto* y = static_cast<float*>(call.result) + row * length;
    const float mean = math::div(squares(x, length), static_cast<float>(length));
    const float scale = math::rsqrt(math::add(mean, static_cast<float>(call.numbers[0])));
    for (int64_t i = 0; i < length; ++i) y[i] = math::mul(math::mul(x[i], scale), w[i]);
  }
  return true;
}

template <typename T>
void rotate_rows(const CustomOpCall& call) {
  const auto* x = static_cast<const T*>(call.operands[0].data);
  auto* y = static_cast<T*>(call.result);
  const int64_t length = call.result_dims.back(), count = volume_of(call.result_dims);
  for (int64_t i = 0; i < count; ++i) y[i] = x[i / length * length + (i % length + 1) % length];
}

bool evaluate_rotate(const CustomOpCall& call) {
  call.precise ? rotate_rows<double>(call) : rotate_rows<float>(call);
  return true;
}

template <typename T>
void fold_rows(const CustomOpCall& call) {
  const auto* x = static_cast<const T*>(call.operands[0].data);
  auto* y = static_cast<T*>(call.result);
  const int64_t half = call.result_dims.back(), count = volume_of(call.result_dims);
  for (int64_t i = 0; i < count; ++i) {
    const T* own = x + i / half * 2 * half + i % half;
    y[i] = own[0] + own[half];
  }
}

bool evaluate_fold(const CustomOpCall& call) {
  call.precise ? fold_rows<double>(call) : fold_rows<float>(call);
  return true;
}

template <typename T>
void scale_rows(const CustomOpCall& call) {
  const auto* x = static_cast<const T*>(call.operands[0].data);
  const auto* w = static_cast<const T*>(call.operands[1].data);
  auto* y = static_cast<T*>(call.result);
  const int64_t length = call.result_dims.back(), count = volume_of(call.result_dims);
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * w[i % length];
}

bool evaluate_scale(const CustomOpCall& call) {
  call.precise ? scale_rows<double>(call) : scale_rows<float>(call);
  return true;
}

bool evaluate_choose(const CustomOpCall& call) {
  const auto* x = static_cast<const int32_t*>(call.operands[0].data);
  const auto* m = static_cast<const uint8_t*>(call.operands[1].data);
  auto* y = static_cast<int32_t*>(call.result);
  for (int64_t i = 0; i < call.result_dims[0]; ++i)
    y[i] = m[i] != 0 ? x[i] : static_cast<int32_t>(call.numbers[0]);
  return true;
}

bool evaluate_above(const CustomOpCall& call) {
  auto* y = static_cast<uint8_t*>(call.result);
  for (int64_t i = 0; i < volume_of(call.result_dims); ++i)
    y[i] = call.precise ? static_cast<const double*>(call.operands[0].data)[i] > 0
                        : static_cast<const float*>(call.operands[0].data)[i] > 0;
  return true;
}

void add(CustomOp op) {
  const Status status = register_custom_op(std::move(op));
  SINTER_CHECK(status, "{}", status.error().message());
}

}  // namespace

CustomOp norm_op(std::string name) {
  CustomOp op;
  op.name = std::move(name);
  op.signature = "x: float[..., D], w: x[D] -> x[..., D]";
  op.source = kNormSource;
  op.function = "test_norm";
  op.row_axes = -1;
  op.open_operands = {true, false};
  op.open_result = true;
  op.exact = true;
  op.evaluate = evaluate_norm;
  op.number_count = 1;
  return op;
}

void register_custom_ops() {
  add(norm_op("test.rms_norm"));
  CustomOp closed = norm_op("test.closed_norm");
  closed.open_operands = {};
  closed.open_result = false;
  add(closed);
  CustomOp loose = norm_op("test.loose_norm");
  loose.exact = false;
  loose.tolerance = 1e-6;
  add(loose);

  CustomOp rotate;
  rotate.name = "test.rotate";
  rotate.signature = "x: float[..., D] -> x[..., D]";
  rotate.source = R"(
template <typename X, typename Y>
__device__ void test_rotate(X x, Y y, const SinterCustom& at) {
  const long long length = at.result_dims(1), first = at.row * length;
  auto* row = reinterpret_cast<float*>(at.shared);
  for (long long i = threadIdx.x; i < length; i += blockDim.x) row[i] = load(x.data() + first + i);
  __syncthreads();
  for (long long i = threadIdx.x; i < length; i += blockDim.x)
    y.set(first + i, row[i + 1 < length ? i + 1 : 0]);
}
)";
  rotate.function = "test_rotate";
  rotate.threads = 64;
  rotate.shared_bytes = 4096;
  rotate.exact = true;
  rotate.evaluate = evaluate_rotate;
  add(rotate);

  CustomOp fold;
  fold.name = "test.fold";
  fold.signature = "x: float[..., D] -> x[..., D/2]";
  fold.source = R"(
namespace test {
template <typename X, typename Y>
__device__ void fold(X x, Y y, const SinterCustom& at) {
  const long long half = at.dims(0, 1) / 2;
  for (long long i = threadIdx.x; i < half; i += blockDim.x)
    y.set(at.row * half + i, x(at.row * 2 * half + i) + x(at.row * 2 * half + half + i));
}
}  // namespace test
)";
  fold.function = "test::fold";
  fold.threads = 32;
  fold.open_operands = {true};
  fold.open_result = true;
  fold.exact = true;
  fold.evaluate = evaluate_fold;
  add(fold);

  CustomOp scale;
  scale.name = "test.scale";
  scale.signature = "x: float[..., D], w: x[D] -> x[..., D]";
  scale.source = R"(
template <typename X, typename W, typename Y>
__device__ void test_scale(X x, W w, Y y, const SinterCustom& at) {
  const long long length = at.dims(1, 0), first = at.row * length;
  if (length % 8 != 0) {
    for (long long i = threadIdx.x; i < length; i += blockDim.x)
      y.set(first + i, x(first + i) * w(i));
    return;
  }
  for (long long i = 8 * threadIdx.x; i < length; i += 8 * blockDim.x) {
    float a[8], b[8];
    x.chunk(a, first + i);
    w.chunk(b, i);
    for (int e = 0; e < 8; ++e) a[e] *= b[e];
    y.set_chunk(first + i, a);
  }
}
)";
  scale.function = "test_scale";
  scale.threads = 64;
  scale.row_axes = -1;
  scale.open_operands = {true, false};
  scale.open_result = true;
  scale.exact = true;
  scale.evaluate = evaluate_scale;
  add(scale);

  CustomOp choose;
  choose.name = "test.choose";
  choose.signature = "x: i32[N], m: i1[N] -> i32[N]";
  choose.source = R"(
template <typename X, typename M, typename Y>
__device__ void test_choose(X x, M m, Y y, const SinterCustom& at) {
  if (threadIdx.x == 0) y.set(at.row, m(at.row) ? x(at.row) : static_cast<int>(at.number(0)));
}
)";
  choose.function = "test_choose";
  choose.threads = 32;
  choose.open_operands = {true, true};
  choose.open_result = true;
  choose.exact = true;
  choose.evaluate = evaluate_choose;
  choose.number_count = 1;
  add(choose);

  CustomOp above;
  above.name = "test.above";
  above.signature = "x: float[N, 4] -> i1[N, 4]";
  above.source = R"(
template <typename X, typename Y>
__device__ void test_above(X x, Y y, const SinterCustom& at) {
  for (long long i = threadIdx.x; i < 4 * at.dims(0, 0); i += blockDim.x) y.set(i, x(i) > 0.0f);
}
)";
  above.function = "test_above";
  above.row_axes = 0;
  above.open_operands = {true};
  above.open_result = true;
  above.exact = true;
  above.evaluate = evaluate_above;
  add(above);
}

}  // namespace sinter::test
