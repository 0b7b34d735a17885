// sinter_gpu_faults NAME: runs a kernel with a fault on a CUDA device, the way a plan's kernels
// run. Alone it just runs; the tool of compute-sanitizer that is named beside a fault must find it,
// and none may find anything in the sound kernel.
//
// Exit codes: 0 it ran, 2 usage, 5 no device or no compiler.
#include <cstdio>

#include "driver/compile/compile.h"
#include "ir/text.h"
#include "kernels/library.h"
#include "runtime/cuda/executable.h"

namespace sinter {
namespace {

// 64 threads, one element each. Nothing lies after x: the inputs are the last of their allocation.
constexpr std::string_view kModule = R"(
module @faults {
  entry @main(%x: f32[64]) -> (%y) {
    %y = exp %x : f32[64]
  }
}
)";
constexpr int64_t kThreads = 64;

struct Planted {
  std::string_view name, tool, body;
};
constexpr Planted kPlanted[] = {
    {"sound", "", "shared[i] = x[i]; __syncthreads(); y[i] = shared[63 - i];"},
    {"out_of_bounds", "memcheck", "y[i] = x[i + 1];"},
    {"race", "racecheck", "shared[i] = x[i]; y[i] = shared[63 - i];"},
    {"uninitialized", "initcheck", "y[i] = x[i] + y[i];"},
    {"divergence", "synccheck", "if (i < 48) __syncthreads(); y[i] = x[i];"},
};

/// The module's plan with the fault instead of its kernel.
Result<std::shared_ptr<const Program>> plan(const Planted& planted, const std::string& target) {
  SINTER_LET(module, parse_module(kModule, "faults.sir"));
  SINTER_LET(frozen, freeze(std::move(module), {}));
  CompileOptions options;
  options.target = target;
  SINTER_LET(compiled, compile(std::move(frozen), options));
  auto program = std::make_shared<Program>(*compiled.program);
  SINTER_CHECK(program->kernels.size() == 1, "{} kernels", program->kernels.size());
  Kernel& kernel = program->kernels[0];
  kernel.launch = Launch();
  kernel.launch.rows = SymExpr(1);
  kernel.launch.threads = kThreads;
  kernel.source = fmt::format(
      "#include \"kernels/common/launch.cuh\"\n"
      "extern \"C\" __global__ void {}(const float* x, float* y) {{\n"
      "  sinter::griddepcontrol_launch_dependents();\n  sinter::griddepcontrol_wait();\n"
      "  __shared__ float shared[{}];\n  const int i = threadIdx.x;\n  {}\n}}\n",
      kernel.name, kThreads, planted.body);
  return program;
}

Status run(const Planted& planted) {
  SINTER_LET(device, CudaDevice::open(0));
  SINTER_LET(program, plan(planted, device->arch()));
  SINTER_LET(gemm, CudaGemm::create(device, kernel_library(), {}, GemmPolicy::first));
  SINTER_LET(weights, CudaWeights::load(device, *program, nullptr));
  SINTER_LET(model, CudaExecutable::load(program, device, gemm, weights, kernel_library(),
                                         KernelCache("")));
  SINTER_LET(session, model->new_session({}));
  SINTER_LET(x, make_tensor(DType::f32, {kThreads}));
  for (int64_t i = 0; i < kThreads; ++i) x.data<float>()[i] = static_cast<float>(i);
  SINTER_TRY(session->run("main", {}, {&x}));
  return {};
}

int run(std::string_view name) {
  for (const Planted& planted : kPlanted) {
    if (planted.name != name) continue;
    const Status done = run(planted);
    if (!done) std::fprintf(stderr, "sinter_gpu_faults: %s\n", done.error().message().c_str());
    return done ? 0 : static_cast<int>(done.error().code);
  }
  std::fputs("sinter_gpu_faults NAME: one of\n", stderr);
  for (const Planted& planted : kPlanted)
    std::fprintf(stderr, "  %-16s %s\n", planted.name.data(), planted.tool.data());
  return 2;
}

}  // namespace
}  // namespace sinter

int main(int argc, char** argv) { return sinter::run(argc == 2 ? argv[1] : ""); }
