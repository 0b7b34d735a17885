// A fused graph between the caller's own kernels: the caller's context, stream, memory and CUDA
// graph. Without a GPU it says so and ends.
#include <cuda.h>
#include <sinter/sinter.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::int64_t kRows = 256, kWidth = 1024;
constexpr std::size_t kElements = kRows * kWidth, kBytes = kElements * sizeof(float);
constexpr int kSkipped = 77;

// The caller's kernel, x[i] = 2 * x[i], as text for the driver.
constexpr const char* kDouble = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry double_elements(.param .u64 x, .param .u32 count) {
  .reg .pred %p;
  .reg .f32 %f;
  .reg .b32 %r<5>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [x];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r2, %r2, %r3, %r4;
  setp.ge.u32 %p, %r2, %r1;
  @%p bra done;
  cvta.to.global.u64 %d1, %d1;
  mul.wide.u32 %d2, %r2, 4;
  add.s64 %d3, %d1, %d2;
  ld.global.f32 %f, [%d3];
  add.f32 %f, %f, %f;
  st.global.f32 [%d3], %f;
done:
  ret;
}
)";

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  cuGetErrorString(result, &text);
  std::fprintf(stderr, "%s: %s\n", what, text ? text : "unknown error");
  std::exit(1);
}

void check(const sinter::Status& done) {
  if (done) return;
  std::fprintf(stderr, "%s\n", done.error().message.c_str());
  std::exit(1);
}

template <typename T>
T take(sinter::Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

sinter::Model build() {
  using sinter::DType;
  sinter::ModuleBuilder module("norm_add");
  const sinter::Symbol rows = module.symbol("N", 1, 65536);
  module.weight("weight", DType::f32, {kWidth});
  sinter::Graph graph = module.entry("main");
  const sinter::Value x = graph.input("x", DType::f32, {rows, kWidth});
  const sinter::Value norm = graph.rms_norm(x, graph.use("weight"), 1e-6, "norm");
  graph.output(graph.add(norm, x, "y"));
  return take(module.build());
}

/// The same on the CPU.
std::vector<float> on_cpu(const sinter::Plan& plan, const sinter::Weights& weights,
                          const std::vector<float>& x) {
  const auto executable =
      take(sinter::Executable::load(plan, take(sinter::Device::open("cpu")), weights));
  auto session = take(sinter::Session::create(executable));
  auto call = take(sinter::Call::create(session, "main"));
  std::vector<float> y(x.size());
  check(call.input("x", {sinter::DType::f32, {kRows, kWidth}, x.data()}));
  check(call.output("y", {sinter::DType::f32, {kRows, kWidth}, y.data()}));
  check(call.run());
  return y;
}

}  // namespace

int main() {
  int devices = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&devices) != CUDA_SUCCESS || devices == 0) {
    std::printf("skipped: no GPU\n");
    return kSkipped;
  }
  // The caller's own context, stream and memory.
  CUdevice gpu;
  CUcontext context;
  CUstream stream;
  check(cuDeviceGet(&gpu, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, gpu), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  CUdeviceptr x_memory, y_memory, weight_memory;
  check(cuMemAlloc(&x_memory, kBytes), "cuMemAlloc");
  check(cuMemAlloc(&y_memory, kBytes), "cuMemAlloc");
  check(cuMemAlloc(&weight_memory, kWidth * sizeof(float)), "cuMemAlloc");
  CUmodule code;
  CUfunction doubled;
  check(cuModuleLoadData(&code, kDouble), "cuModuleLoadData");
  check(cuModuleGetFunction(&doubled, code, "double_elements"), "cuModuleGetFunction");

  std::vector<float> x(kElements), y(kElements), weight(kWidth, 0.5f);
  for (std::size_t i = 0; i < kElements; ++i) x[i] = std::sin(static_cast<float>(i));
  check(cuMemcpyHtoD(weight_memory, weight.data(), kWidth * sizeof(float)), "cuMemcpyHtoD");

  // Sinter works in the same context, on the same stream; its memory comes from the caller.
  sinter::CudaOptions options;
  options.context = context;
  std::size_t given = 0;
  options.allocate = [&](std::size_t bytes, void*) -> void* {
    CUdeviceptr memory = 0;
    if (cuMemAlloc(&memory, bytes) != CUDA_SUCCESS) return nullptr;
    given += bytes;
    return reinterpret_cast<void*>(memory);
  };
  options.release = [](void* memory, std::size_t, void*) {
    cuMemFree(reinterpret_cast<CUdeviceptr>(memory));
  };
  std::vector<float> expected;
  {
    const auto device = take(sinter::Device::cuda(options));
    sinter::CompileOptions compile;
    compile.target = device.target();
    const auto plan = take(sinter::Plan::compile(build(), compile));
    sinter::Weights on_device, on_host;
    on_device.add("weight", {sinter::DType::f32, {kWidth}, reinterpret_cast<void*>(weight_memory)},
                  true);
    on_host.add("weight", {sinter::DType::f32, {kWidth}, weight.data()});
    const auto executable = take(sinter::Executable::load(plan, device, on_device));
    auto session = take(sinter::Session::create(executable, {}, stream));
    auto call = take(sinter::Call::create(session, "main"));
    check(
        call.input("x", {sinter::DType::f32, {kRows, kWidth}, reinterpret_cast<void*>(x_memory)}));
    check(
        call.output("y", {sinter::DType::f32, {kRows, kWidth}, reinterpret_cast<void*>(y_memory)}));
    check(call.prepare());

    // The caller's kernel, Sinter's kernels and the caller's kernel again, in one CUDA graph.
    const auto double_all = [&](CUdeviceptr memory) {
      unsigned count = kElements;
      void* parameters[] = {&memory, &count};
      check(cuLaunchKernel(doubled, (kElements + 255) / 256, 1, 1, 256, 1, 1, 0, stream, parameters,
                           nullptr),
            "cuLaunchKernel");
    };
    CUgraph graph;
    CUgraphExec recorded;
    check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "capture");
    double_all(x_memory);
    check(call.run());
    double_all(y_memory);
    check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    check(cuGraphInstantiate(&recorded, graph, 0), "cuGraphInstantiate");

    check(cuMemcpyHtoDAsync(x_memory, x.data(), kBytes, stream), "cuMemcpyHtoDAsync");
    check(cuGraphLaunch(recorded, stream), "cuGraphLaunch");
    check(cuMemcpyDtoHAsync(y.data(), y_memory, kBytes, stream), "cuMemcpyDtoHAsync");
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    check(cuGraphExecDestroy(recorded), "cuGraphExecDestroy");
    check(cuGraphDestroy(graph), "cuGraphDestroy");

    for (float& element : x) element *= 2;
    expected = on_cpu(plan, on_host, x);
  }
  std::size_t different = 0;
  for (std::size_t i = 0; i < kElements; ++i) different += y[i] != 2 * expected[i];
  std::printf("%zu of %zu elements differ from the CPU's; %zu bytes from the caller's allocator\n",
              different, kElements, given);
  return different == 0 ? 0 : 1;
}
