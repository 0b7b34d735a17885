// Calls of the library on a GPU: what a call of a small graph costs the host, beside a launch of a
// kernel by hand, and two sessions on two threads. Needs cuda.h and an installed Sinter:
//
//   g++ -O2 -std=c++20 -I PREFIX/include -I $CUDA_HOME/include bench/embedded_calls.cpp
//       -o embedded_calls -L PREFIX/lib -lsinter -lcuda -pthread -Wl,-rpath,PREFIX/lib
//
// Prints JSON: times in microseconds, medians of batches of calls, each batch followed by a
// synchronization that is not counted.
#include <cuda.h>
#include <sinter/sinter.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int kBatch = 200, kBatches = 100;
constexpr std::int64_t kRows = 8, kWidth = 1024, kTokens = 64;

constexpr const char* kEmptyKernel = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) { ret; }
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

/// Device memory, never given back.
void* memory(std::size_t bytes) {
  CUdeviceptr address = 0;
  check(cuMemAlloc(&address, bytes), "cuMemAlloc");
  return reinterpret_cast<void*>(address);
}
void* copy_of(const void* host, std::size_t bytes) {
  void* device = memory(bytes);
  check(cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(device), host, bytes), "cuMemcpyHtoD");
  return device;
}
template <typename T>
std::vector<T> read(const void* device, std::size_t count) {
  std::vector<T> host(count);
  check(cuMemcpyDtoH(host.data(), reinterpret_cast<CUdeviceptr>(device), count * sizeof(T)),
        "cuMemcpyDtoH");
  return host;
}

CUstream new_stream() {
  CUstream stream;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

/// Median time of one of a batch, in microseconds.
template <typename Work>
double host_microseconds(CUstream stream, Work work) {
  std::vector<double> times;
  for (int batch = -10; batch < kBatches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) work();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    if (batch >= 0) times.push_back(took.count() / kBatch);
  }
  std::nth_element(times.begin(), times.begin() + kBatches / 2, times.end());
  return times[kBatches / 2];
}

std::vector<float> waves(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(step * static_cast<float>(i));
  return values;
}

/// LayerNorm(x + r): one kernel.
sinter::Model small_graph() {
  using sinter::DType;
  sinter::ModuleBuilder module("small");
  const sinter::Symbol rows = module.symbol("N", 1, 4096);
  module.weight("w", DType::f32, {kWidth});
  sinter::Graph graph = module.entry("main");
  const sinter::Value x = graph.input("x", DType::f32, {rows, kWidth});
  const sinter::Value r = graph.input("r", DType::f32, {rows, kWidth});
  graph.output(graph.layer_norm(graph.add(x, r), graph.use("w"), {}, 1e-5, "y"));
  return take(module.build());
}

/// GELU(x · wᵀ), a product of the library and a kernel.
sinter::Model product_graph() {
  using sinter::DType;
  sinter::ModuleBuilder module("product");
  module.weight("w", DType::f32, {kWidth, kWidth});
  sinter::Graph graph = module.entry("main");
  const sinter::Value x = graph.input("x", DType::f32, {kTokens, kWidth});
  graph.output(graph.gelu(graph.linear(x, graph.use("w"), {}, "p"), "y"));
  return take(module.build());
}

/// Many calls of a session in a stream of its own; the last result.
std::vector<float> many_calls(CUcontext context, const sinter::Executable& executable,
                              const void* x, int calls) {
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const CUstream stream = new_stream();
  auto session = take(sinter::Session::create(executable, {}, stream));
  auto call = take(sinter::Call::create(session, "main"));
  void* y = memory(kTokens * kWidth * sizeof(float));
  check(call.input("x", {sinter::DType::f32, {kTokens, kWidth}, x}));
  check(call.output("y", {sinter::DType::f32, {kTokens, kWidth}, y}));
  for (int i = 0; i < calls; ++i) check(call.run());
  check(session.synchronize());
  return read<float>(y, kTokens * kWidth);
}

}  // namespace

int main() {
  check(cuInit(0), "cuInit");
  CUdevice gpu;
  CUcontext context;
  check(cuDeviceGet(&gpu, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, gpu), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  sinter::CudaOptions options;
  options.context = context;
  const auto device = take(sinter::Device::cuda(options));
  sinter::CompileOptions compile;
  compile.target = device.target();

  // A call of one kernel.
  const auto x = waves(kRows * kWidth, 0.1f), r = waves(kRows * kWidth, 0.03f);
  const std::vector<float> w(kWidth, 1.25f);
  sinter::Weights weights, on_host;
  weights.add("w", {sinter::DType::f32, {kWidth}, copy_of(w.data(), kWidth * sizeof(float))}, true);
  on_host.add("w", {sinter::DType::f32, {kWidth}, w.data()});
  const auto plan = take(sinter::Plan::compile(small_graph(), compile));
  const auto executable = take(sinter::Executable::load(plan, device, weights));
  const CUstream stream = new_stream();
  auto session = take(sinter::Session::create(executable, {}, stream));
  auto call = take(sinter::Call::create(session, "main"));
  void* y = memory(x.size() * sizeof(float));
  check(call.input("x", {sinter::DType::f32, {kRows, kWidth}, copy_of(x.data(), x.size() * 4)}));
  check(call.input("r", {sinter::DType::f32, {kRows, kWidth}, copy_of(r.data(), r.size() * 4)}));
  check(call.output("y", {sinter::DType::f32, {kRows, kWidth}, y}));
  check(call.prepare());
  const double run = host_microseconds(stream, [&] { check(call.run()); });
  const auto on_gpu = read<float>(y, x.size());

  auto cpu_session = take(sinter::Session::create(
      take(sinter::Executable::load(plan, take(sinter::Device::open("cpu")), on_host))));
  auto cpu_call = take(sinter::Call::create(cpu_session, "main"));
  std::vector<float> expected(x.size());
  check(cpu_call.input("x", {sinter::DType::f32, {kRows, kWidth}, x.data()}));
  check(cpu_call.input("r", {sinter::DType::f32, {kRows, kWidth}, r.data()}));
  check(cpu_call.output("y", {sinter::DType::f32, {kRows, kWidth}, expected.data()}));
  check(cpu_call.run());
  const bool same = std::memcmp(on_gpu.data(), expected.data(), x.size() * sizeof(float)) == 0;

  // A launch by hand, and the call as a CUDA graph.
  CUmodule code;
  CUfunction nothing;
  check(cuModuleLoadData(&code, kEmptyKernel), "cuModuleLoadData");
  check(cuModuleGetFunction(&nothing, code, "nothing"), "cuModuleGetFunction");
  const double launch = host_microseconds(stream, [&] {
    void* pointers[] = {y, y, y, y};
    void* parameters[] = {&pointers[0], &pointers[1], &pointers[2], &pointers[3]};
    check(cuLaunchKernel(nothing, kRows, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr),
          "cuLaunchKernel");
  });
  CUgraph graph;
  CUgraphExec recorded;
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  check(call.run());
  check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  check(cuGraphInstantiate(&recorded, graph, 0), "cuGraphInstantiate");
  const double replay =
      host_microseconds(stream, [&] { check(cuGraphLaunch(recorded, stream), "cuGraphLaunch"); });
  const double bind = host_microseconds(stream, [&] {
    check(call.output("y", {sinter::DType::f32, {kRows, kWidth}, y}));
    check(call.run());
  });

  // Two sessions on two threads, products of the library included.
  const auto matrix = waves(kWidth * kWidth, 0.7f), tokens = waves(kTokens * kWidth, 0.2f);
  sinter::Weights product_weights;
  product_weights.add("w", {sinter::DType::f32, {kWidth, kWidth}, matrix.data()});
  const auto product = take(sinter::Executable::load(
      take(sinter::Plan::compile(product_graph(), compile)), device, product_weights));
  const void* in = copy_of(tokens.data(), tokens.size() * sizeof(float));
  const auto alone = many_calls(context, product, in, 1);
  std::vector<float> first, second;
  std::thread a([&] { first = many_calls(context, product, in, 500); });
  std::thread b([&] { second = many_calls(context, product, in, 500); });
  a.join();
  b.join();
  const bool threads_agree = first == alone && second == alone;

  std::printf(
      "{\"device\": \"%s\", \"kernels_of_the_call\": %zu, \"call_us\": %.3f, "
      "\"call_with_a_binding_us\": %.3f, \"launch_by_hand_us\": %.3f, \"graph_replay_us\": %.3f, "
      "\"same_bits_as_the_cpu\": %s, \"two_sessions_agree\": %s}\n",
      device.name().c_str(), plan.steps().size(), run, bind, launch, replay,
      same ? "true" : "false", threads_agree ? "true" : "false");
  return same && threads_agree ? 0 : 1;
}
