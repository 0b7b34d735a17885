#include "runtime/cuda_gemm.h"

#include "runtime/gemm_tuner.h"
#include "runtime/kernel_compiler.h"
#include "runtime/strided_gemm.h"

namespace sinter {
namespace {

constexpr int kProposals = 8;

Status belongs(const GemmRecord& record, const std::string& device, const std::string& library) {
  if (record.device == device && record.library == library) return {};
  return fail(
      fmt::format("the recorded decisions about matrix products are for {} with {}, this is "
                  "{} with {}",
                  printable(record.device), printable(record.library), device, library),
      {}, "tune on this device, or run without the record");
}

/// Errors of a record that freezes decisions.
tl::unexpected<Error> not_frozen(std::string what, const GemmProblem& problem) {
  return fail(std::move(what), "product " + problem.key(),
              "make a record of these products, or run without one");
}

}  // namespace

Result<std::shared_ptr<CudaGemm>> CudaGemm::create(CudaDevicePtr device,
                                                   llvm::ArrayRef<EmbeddedHeader> kernel_library,
                                                   GemmRecord record, GemmPolicy policy,
                                                   KernelCache cache) {
  SINTER_TRY(device->make_current());
  SINTER_LET(library, CublasLt::create());
  const bool empty = record.device.empty() && record.library.empty() && record.choices.empty();
  if (!empty) SINTER_TRY(belongs(record, device->name(), library->name()));
  record.device = device->name();
  record.library = library->name();
  SINTER_LET(workspace, CudaMemory::allocate(device, kGemmWorkspaceBytes, "matrix products"));
  std::shared_ptr<CudaGemm> gemm(new CudaGemm);
  gemm->device_ = std::move(device);
  gemm->kernel_library_.assign(kernel_library.begin(), kernel_library.end());
  gemm->policy_ = policy;
  gemm->cache_ = std::move(cache);
  gemm->record_ = std::move(record);
  gemm->workspace_ = std::move(workspace);
  gemm->library_ = std::move(library);
  return gemm;
}

Status CudaGemm::prepare(const GemmStep& step, const GemmOperands& operands,
                         llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<int64_t> symbol_values) {
  SINTER_LET(calls, make_gemm_calls(step, operands, symbols, symbol_values));
  if (calls.places.empty() || prepared_.contains(calls.problem)) return {};
  SINTER_TRY(device_->make_current());
  SINTER_LET(implementation, implement(calls.problem));
  prepared_.emplace(calls.problem, std::move(implementation));
  return {};
}

Status CudaGemm::run(const GemmStep& step, const GemmOperands& operands,
                     llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<int64_t> symbol_values,
                     const CudaStream& stream) {
  SINTER_LET(calls, make_gemm_calls(step, operands, symbols, symbol_values));
  if (calls.places.empty()) return {};
  const auto it = prepared_.find(calls.problem);
  if (it == prepared_.end())
    return fail("a matrix product runs that was not prepared", "product " + calls.problem.key(),
                "this is a bug of the executor", ExitCode::internal_error);
  SINTER_TRY(device_->make_current());
  for (const GemmPlace& place : calls.places)
    SINTER_TRY(enqueue(it->first, it->second, it->second.choice, place, stream));
  return {};
}

Result<CudaGemm::Implementation> CudaGemm::implement(const GemmProblem& problem) {
  for (DType dtype : {problem.a.dtype, problem.b.dtype, problem.c.dtype})
    if (!is_float(dtype))
      return fail(fmt::format("a matrix product with {}; only f32, f16 and bf16 have one",
                              to_string(dtype)),
                  "product " + problem.key());
  if (!strided_gemm_blocks(problem))
    return fail("a matrix product is larger than one launch can compute",
                "product " + problem.key(), "run fewer tokens at a time", ExitCode::device);
  Implementation implementation;
  if (const std::optional<CublasLtCall> call = cublaslt_call(problem)) {
    SINTER_LET(product, CublasLtProduct::create(library_, *call, problem));
    implementation.product = std::move(product);
  }
  SINTER_LET(choice, decide(problem, implementation));
  implementation.choice = choice;
  if (choice.kind == GemmChoice::Kind::own && implementation.kernel == nullptr) {
    SINTER_LET(kernel, own_kernel(problem));
    implementation.kernel = kernel;
  }
  record_.choices[problem.key()] = choice;
  return implementation;
}

Result<GemmChoice> CudaGemm::decide(const GemmProblem& problem, Implementation& implementation) {
  if (const auto recorded = record_.choices.find(problem.key());
      recorded != record_.choices.end()) {
    const Status valid = usable(problem, recorded->second, implementation);
    if (valid) return recorded->second;
    if (policy_ == GemmPolicy::frozen)
      return not_frozen(fmt::format("the recorded decision cannot be used: {}", valid.error().what),
                        problem);
  } else if (policy_ == GemmPolicy::frozen) {
    return not_frozen("the record does not decide this matrix product", problem);
  }
  std::vector<GemmChoice> proposals;
  if (implementation.product) {
    SINTER_LET(proposed, implementation.product->propose(kProposals));
    proposals = std::move(proposed);
  }
  if (proposals.empty()) return GemmChoice{};
  if (policy_ == GemmPolicy::first) return proposals.front();
  return tune(problem, proposals, implementation);
}

Status CudaGemm::usable(const GemmProblem& problem, const GemmChoice& choice,
                        const Implementation& implementation) const {
  if (choice.kind == GemmChoice::Kind::own) return {};
  if (!implementation.product)
    return fail("cuBLASLt does not have this product", "product " + problem.key());
  return implementation.product->check(choice);
}

Result<GemmChoice> CudaGemm::tune(const GemmProblem& problem,
                                  const std::vector<GemmChoice>& proposals,
                                  Implementation& implementation) {
  SINTER_LET(kernel, own_kernel(problem));
  implementation.kernel = kernel;
  std::vector<GemmCandidate> candidates;
  const auto add = [&](const GemmChoice& choice) {
    candidates.push_back({choice, [&, choice](const GemmPlace& place, const CudaStream& stream) {
                            return enqueue(problem, implementation, choice, place, stream);
                          }});
  };
  for (const GemmChoice& proposal : proposals) add(proposal);
  add(GemmChoice{});
  return tune_gemm(device_, problem, candidates);
}

Result<CudaApi::Kernel> CudaGemm::own_kernel(const GemmProblem& problem) {
  const StridedGemmKernel kernel = strided_gemm_kernel(problem);
  auto it = own_kernels_.find(kernel.name);
  if (it == own_kernels_.end()) {
    SINTER_LET(nvrtc, find_nvrtc());
    const KernelSource source{kernel.name, kernel.text};
    SINTER_LET(compiled, compile_cached(nvrtc, cache_, source, kernel_library_, device_->arch()));
    SINTER_LET(library, CudaLibrary::load(device_, compiled.cubins[0].bytes, kernel.name));
    it = own_kernels_.emplace(kernel.name, std::move(library)).first;
  }
  return it->second.kernel(kernel.name);
}

Status CudaGemm::enqueue(const GemmProblem& problem, Implementation& implementation,
                         const GemmChoice& choice, const GemmPlace& place,
                         const CudaStream& stream) const {
  if (choice.kind == GemmChoice::Kind::cublaslt)
    return implementation.product->run(choice, place, workspace_.address(), stream.handle());
  GemmPlace pointers = place;
  StridedGemmShape shape = strided_gemm_shape(problem);
  void* parameters[] = {&pointers.a, &pointers.b, &pointers.c, &pointers.bias, shape.data()};
  const auto blocks = static_cast<unsigned>(*strided_gemm_blocks(problem));
  Status launched =
      device_->check(device_->api().launch(implementation.kernel, blocks, 1, 1, kStridedGemmThreads,
                                           1, 1, 0, stream.handle(), parameters, nullptr),
                     "cuLaunchKernel strided_gemm");
  if (!launched)
    launched.error().where = fmt::format("product {}, {}", problem.key(), launched.error().where);
  return launched;
}

}  // namespace sinter
