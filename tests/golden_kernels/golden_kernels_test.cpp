// Every kernel of the golden models' fused plans and of two unfused ones, in one float type or all:
// run from its text on the CPU in one order of threads and compared with the evaluation of its
// group bit for bit. NVRTC compiles the kernels of one type and one unfused plan for sm_90a, and
// those of two fused plans for sm_80. The tests of the families play every order.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "driver/compile/compile.h"
#include "frontends/load_model.h"
#include "ir/grouping.h"
#include "runtime/random_inputs.h"
#include "shim/kernel_shim.h"
#include "support/nvrtc.h"

namespace sinter::golden_kernels_test {
namespace {

struct GoldenModel {
  const char* name;
  std::vector<DType> dtypes;
  /// Whether the unfused plan's kernels are tried too: of one op each, much the same for all
  /// models.
  bool unfused = false;
};

/// Two models in every type, with their unfused plans; of the others, whose kernels are of the same
/// ops in other groups, the fused plan in one type, mostly one that is rounded to.
std::vector<GoldenModel> golden_models() {
  const std::vector<DType> every = {DType::f32, DType::f16, DType::bf16};
  std::vector<GoldenModel> models = {{"gpt2", every, true},
                                     {"llama", every, true},
                                     {"gpt_neox_parallel", {DType::f32}},
                                     {"gpt_neox_sequential", {DType::bf16}},
                                     {"llama3_gqa_scaled_rope", {DType::bf16}}};
  for (const char* name :
       {"bert_post_ln", "gemma2", "gemma3_text", "olmo2", "phi_qk_norm_grouped", "qwen3"})
    models.push_back({name, {DType::f16}});
  return models;
}

/// The distinct kernels of one golden model, by name.
struct ModelKernels {
  std::vector<std::shared_ptr<const Program>> programs;
  std::map<std::string, const Kernel*> kernels;
};

ModelKernels kernels_of(const GoldenModel& golden, const std::string& target) {
  ModelKernels result;
  for (DType dtype : golden.dtypes) {
    const auto model = load_model(std::string(SINTER_TESTS_DIR "/golden/") + golden.name,
                                  {.dtype = dtype, .random_weights = {}, .streaming = {}});
    REQUIRE_MESSAGE(model.has_value(), (model ? "" : model.error().message()));
    const auto module = freeze(model->module, {});
    REQUIRE(module.has_value());
    for (bool fuse : {true, false}) {
      if (!fuse && !golden.unfused) continue;
      CompileOptions options;
      options.target = target;
      options.fusion.enabled = fuse;
      const auto compiled = compile(*module, options);
      REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().message()));
      result.programs.push_back(compiled->program);
      for (const Kernel& kernel : compiled->program->kernels)
        result.kernels.emplace(kernel.name, &kernel);
    }
  }
  return result;
}

/// A product without neighbours: its text differs in sizes alone, and takes seconds to compile.
/// The tests gemv_kernels and nvrtc_kernels cover these forms.
bool is_product_alone(const Kernel& kernel) {
  return kernel.name.starts_with("gemv_") && llvm::count_if(kernel.group.ops(), computes) == 1;
}

/// Small and odd sizes; symbols as build_model names them.
std::vector<int64_t> symbol_values(llvm::ArrayRef<Symbol> symbols) {
  const std::map<std::string, int64_t> sizes = {{"N", 5}, {"M", 3}, {"B", 2}, {"R", 24}, {"K", 16}};
  std::vector<int64_t> values;
  for (const Symbol& symbol : symbols) values.push_back(sizes.at(symbol.name));
  return values;
}

}  // namespace

TEST_CASE("golden kernels equal the host evaluator bit for bit") {
  std::vector<ModelKernels> models;
  std::vector<const Kernel*> all;  // compiled together: models share headers, and kernels
  for (const GoldenModel& golden : golden_models()) {
    CAPTURE(std::string(golden.name));
    ModelKernels& model = models.emplace_back(kernels_of(golden, "sm_90a"));
    std::erase_if(model.kernels, [](const auto& entry) { return is_product_alone(*entry.second); });
    CHECK(model.kernels.size() >=
          (golden.unfused ? 7 : 4) * golden.dtypes.size());  // of all entries
    for (const auto& [name, kernel] : model.kernels) all.push_back(kernel);
  }
  const auto shim = KernelShim::compile(all);
  REQUIRE_MESSAGE(shim.has_value(), (shim ? "" : shim.error().message()));
  for (const ModelKernels& model : models) {
    const llvm::ArrayRef<Symbol> symbols = model.programs[0]->symbols;
    const std::vector<int64_t> values = symbol_values(symbols);
    uint64_t seed = 0;
    for (const auto& [name, kernel] : model.kernels) {
      const auto inputs = random_inputs(kernel->group, symbols, values, ++seed);
      REQUIRE_MESSAGE(inputs.has_value(), (inputs ? "" : inputs.error().message()));
      const ThreadOrder order[] = {kThreadOrders[seed % std::size(kThreadOrders)]};
      const Status status =
          check_kernel(*shim, *kernel, symbols, values, addresses_of(*inputs), order);
      CHECK_MESSAGE(status.has_value(), (name + ": " + (status ? "" : status.error().message())));
    }
  }
}

TEST_CASE("golden kernels compile for sm_80 and sm_90a without a GPU" *
          doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_90a"}) {
    std::vector<ModelKernels> models;
    std::map<std::string, std::string> sources_by_name;
    size_t turn = 0;
    for (GoldenModel golden : golden_models()) {
      if (std::string_view(arch) == "sm_80" && !golden.unfused) continue;
      golden.dtypes = {golden.dtypes[turn++ % golden.dtypes.size()]};
      golden.unfused = golden.unfused && models.empty() && std::string_view(arch) == "sm_90a";
      models.push_back(kernels_of(golden, arch));
    }
    // One type of each model; the unfused plan of the first.
    for (const ModelKernels& model : models)
      for (const auto& [name, kernel] : model.kernels)
        if (!is_product_alone(*kernel)) sources_by_name[name] = kernel->source;
    std::vector<KernelSource> sources;
    for (const auto& [name, source] : sources_by_name) sources.push_back({name, source});
    const Status compiled = compile_or_find(*nvrtc, sources, arch);
    CHECK_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().message()));
  }
}

TEST_CASE("an access outside a buffer and undefined behaviour are found") {
  const auto kernel_reading = [](const std::string& name, const std::string& index) {
    Kernel kernel;
    kernel.name = name;
    kernel.source =
        "#include \"kernels/common/vector.cuh\"\nextern \"C\" __global__ void "
        "__launch_bounds__(32)\n" +
        name + "(const float* __restrict__ x0, float* __restrict__ y0) {\n  y0[threadIdx.x] = x0[" +
        index + "];\n}\n";
    const ValueId x = kernel.group.add({OpKind::input, {DType::f32, {32}}, {}, {}, "x0"});
    kernel.group.inputs.push_back(x);
    kernel.group.outputs.push_back(
        kernel.group.add({OpKind::copy, {DType::f32, {32}}, {x}, {}, "v0"}));
    kernel.launch.rows = 1;
    kernel.launch.threads = 32;
    return kernel;
  };
  const Kernel inside = kernel_reading("reads_inside", "threadIdx.x");
  const Kernel outside = kernel_reading("reads_outside", "threadIdx.x + 1");
  const Kernel overflow = kernel_reading("overflows", "(int(threadIdx.x) + 0x7fffffff) % 32");
  const auto shim = KernelShim::compile({&inside, &outside, &overflow});
  REQUIRE_MESSAGE(shim.has_value(), (shim ? "" : shim.error().message()));
  auto input = make_tensor(DType::f32, {32});
  std::fill(input->bytes.begin(), input->bytes.end(), std::byte{0});
  CHECK(shim->run(inside, {}, {&*input}).has_value());
  const auto trapped = shim->run(overflow, {}, {&*input});
  REQUIRE(!trapped.has_value());
  CHECK(trapped.error().message().starts_with(
      "overflows, block 0 of 1: thread 1: undefined behaviour;"));
  CHECK(shim->run(inside, {}, {&*input}).has_value());
  const pid_t child = fork();  // a sanitizer ends the process
  REQUIRE(child >= 0);
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(0);
    _exit(shim->run(outside, {}, {&*input}) ? 0 : 3);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

}  // namespace sinter::golden_kernels_test
