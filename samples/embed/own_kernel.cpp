// A hand-written RMS norm, set into a graph: what fuses around it, and is it right?
#include <sinter/sinter.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

// A block of 256 threads normalizes a row. x(i) is element i of the operand, whoever computes it;
// y.set(i, v) stores element i of the result, or hands it to what follows.
constexpr const char* kSource = R"(
template <typename X, typename W, typename Y>
__device__ void rms_norm_by_hand(X x, W w, Y y, const SinterCustom& at) {
  __shared__ float sums[8];
  const int thread = static_cast<int>(threadIdx.x);
  const long long length = at.dims(1, 0), first = at.row * length;
  float sum = 0.0f;
  for (long long i = thread; i < length; i += 256) {
    const float v = x(first + i);
    sum = sum + v * v;
  }
  for (int stride = 1; stride < 32; stride *= 2)
    sum = sum + __shfl_xor_sync(0xffffffffu, sum, stride);
  if (thread % 32 == 0) sums[thread / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < 8; ++warp) total = total + sums[warp];
  const float mean = total / static_cast<float>(length) + static_cast<float>(at.number(0));
  const float scale = 1.0f / sqrtf(mean);
  for (long long i = thread; i < length; i += 256) y.set(first + i, x(first + i) * scale * w(i));
}
)";

/// The sum of squares in the kernel's order: lanes of 256 threads, a butterfly in each warp, warps
/// one after the other.
template <typename T>
T squares(const T* x, std::int64_t length) {
  std::vector<T> lanes(256, T(0)), sums(32);
  for (std::int64_t i = 0; i < length; ++i) {
    const T square = x[i] * x[i];
    T& lane = lanes[static_cast<std::size_t>(i % 256)];
    lane = lane + square;
  }
  T total = 0;
  for (std::size_t warp = 0; warp < 8; ++warp) {
    T* values = &lanes[32 * warp];
    for (std::size_t stride = 1; stride < 32; stride *= 2) {
      for (std::size_t lane = 0; lane < 32; ++lane)
        sums[lane] = values[lane] + values[lane ^ stride];
      for (std::size_t lane = 0; lane < 32; ++lane) values[lane] = sums[lane];
    }
    total = total + values[0];
  }
  return total;
}

/// The kernel's result on the host, in its own order: the bits are equal. T is double where Sinter
/// measures the error.
template <typename T>
void evaluate(const sinter::Evaluation& of) {
  const std::int64_t length = of.dims(1)[0];
  std::int64_t count = 1;
  for (const std::int64_t extent : of.result_dims()) count *= extent;
  const T* x = of.operand<T>(0);
  const T* w = of.operand<T>(1);
  T* y = of.result<T>();
  for (std::int64_t row = 0; length > 0 && row < count / length; ++row, x += length, y += length) {
    const T mean = squares(x, length) / static_cast<T>(length) + static_cast<T>(of.number(0));
    const T scale = T(1) / std::sqrt(mean);
    for (std::int64_t i = 0; i < length; ++i) y[i] = x[i] * scale * w[i];
  }
}

int failed(const sinter::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main() {
  sinter::KernelDescription kernel;
  kernel.name = "sample.rms_norm";
  kernel.signature = "x: float[..., D], w: x[D] -> x[..., D]";
  kernel.source = kSource;
  kernel.function = "rms_norm_by_hand";
  kernel.threads = 256;
  kernel.numbers = 1;          // eps
  kernel.open_operands = {0};  // what comes before may be computed where x is read
  kernel.open_result = true;   // what comes after may take y as it is set
  kernel.evaluate = [](const sinter::Evaluation& of) {
    of.precise() ? evaluate<double>(of) : evaluate<float>(of);
    return true;
  };
  if (const auto done = sinter::register_kernel(kernel); !done) return failed(done.error());

  using sinter::DType;
  sinter::ModuleBuilder module("by_hand");
  const sinter::Symbol rows = module.symbol("N", 1, 4096);
  sinter::Graph graph = module.entry("main");
  const sinter::Value x = graph.input("x", DType::f16, {rows, 1024});
  const sinter::Value residual = graph.input("residual", DType::f16, {rows, 1024});
  const sinter::Value w = graph.input("w", DType::f16, {1024});
  const sinter::Value sum = graph.add(x, residual, "sum");
  const sinter::Value norm = graph.custom("sample.rms_norm", {sum, w}, {1e-6}, "norm");
  graph.output(graph.silu(norm, "y"));
  const auto model = module.build();
  if (!model) return failed(model.error());

  const auto device = sinter::Device::open("auto");
  if (!device) return failed(device.error());
  sinter::CompileOptions compile;
  compile.target = device->target();
  const auto plan = sinter::Plan::compile(*model, compile);
  if (!plan) return failed(plan.error());
  for (const auto& [a, b] : {std::pair("sum", "norm"), {"norm", "y"}}) {
    const auto why = plan->why("main", a, b);
    if (!why) return failed(why.error());
    std::printf("%s and %s: %s (%s)\n", a, b, why->reason.c_str(), why->text.c_str());
  }
  std::printf("%zu launch\n", plan->steps().size());

  sinter::VerifyOptions options;
  options.target = device->target();
  options.symbols = {{"N", 33}};
  const auto report = sinter::verify(*model, *device, {}, options);
  if (!report) return failed(report.error());
  std::printf("on %s: fused and unfused %s, %lld elements; largest error %.1e\n",
              device->name().c_str(), report->passed ? "agree bit for bit" : "differ",
              static_cast<long long>(report->elements), report->fused_error);
  if (!report->passed) std::printf("%s\n", report->difference.c_str());
  return report->passed ? 0 : 1;
}
