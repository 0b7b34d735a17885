// The functions of scalar_math.h give the host's bits on the device: for every 61st float, or for
// all 2^32 with SINTER_EXHAUSTIVE=1. A host evaluator checks every kernel.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "driver/compile/compile.h"
#include "driver/small_models.h"
#include "ir/scalar_math.h"
#include "ir/text.h"
#include "kernels/library.h"
#include "runtime/cuda/executable.h"

namespace sinter {
namespace {

constexpr int64_t kElements = int64_t{1} << 22;  // of a call

/// All elementwise ops of one float, ops of two, and casts.
std::string module_text() {
  std::string ops, outputs;
  const auto add = [&](std::string_view name, std::string_view op, std::string_view type) {
    outputs += fmt::format("{}%{}", outputs.empty() ? "" : ", ", name);
    ops += fmt::format("    %{} = {} : {}[{}]\n", name, op, type, kElements);
  };
#define SINTER_ELEMENTWISE(name, operands, result, domain, ...)        \
  if (operands == 1 && OpInfo::Domain::domain == OpInfo::Domain::real) \
    add(#name, #name " %x", "f32");
#include "ir/ops.def"
  add("quotient", "div %x, %exp", "f32");
  add("power", "pow %x, %tanh", "f32");
  add("narrow", "cast %x", "i32");
  add("wide", "cast %x", "i64");
  return fmt::format("module @scalar_math {{\n  entry @main(%x: f32[{}]) -> ({}) {{\n{}  }}\n}}\n",
                     kElements, outputs, ops);
}

Result<std::unique_ptr<Session>> open_session() {
  SINTER_LET(device, CudaDevice::open(0));
  SINTER_LET(module, parse_module(module_text(), "scalar_math.sir"));
  SINTER_LET(frozen, freeze(std::move(module), {}));
  CompileOptions options;
  options.target = device->arch();
  SINTER_LET(compiled, compile(std::move(frozen), options));
  SINTER_LET(gemm, CudaGemm::create(device, kernel_library(), {}, GemmPolicy::first));
  SINTER_LET(weights, CudaWeights::load(device, *compiled.program, nullptr));
  SINTER_LET(model, CudaExecutable::load(compiled.program, device, gemm, weights, kernel_library(),
                                         KernelCache("")));
  return model->new_session({});
}

TEST_CASE("device and host agree on every argument") {
  const char* all = std::getenv("SINTER_EXHAUSTIVE");
  const uint64_t stride = all != nullptr && *all == '1' ? 1 : 61;
  const uint64_t call_step = stride * kElements;
  std::atomic<uint64_t> next = 0;
  std::atomic<int> calls = 0;
  std::vector<std::string> errors(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  const auto work = [&](std::string& error) {
    auto session = open_session();
    HostTensor x = value(make_tensor(DType::f32, {kElements}));
    CallOptions options;
    options.check_kernels = true;
    for (uint64_t begin;
         session && error.empty() && (begin = next.fetch_add(call_step)) < uint64_t{1} << 32;) {
      for (int64_t i = 0; i < kElements; ++i)
        x.data<float>()[i] =
            math::bits_float(static_cast<uint32_t>(begin + stride * static_cast<uint64_t>(i)));
      const auto result = (*session)->run("main", {}, {&x}, options);
      if (!result)
        error = fmt::format("arguments from bits {:#x}: {}", begin, result.error().message());
      ++calls;
    }
    if (!session) error = session.error().message();
  };
  std::vector<std::thread> threads;
  for (std::string& error : errors) threads.emplace_back(work, std::ref(error));
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK_MESSAGE(error.empty(), error);
  CHECK(static_cast<uint64_t>(calls) == ((uint64_t{1} << 32) + call_step - 1) / call_step);
}

}  // namespace
}  // namespace sinter
