#include "runtime/cuda/gemm.h"

#include "plan/plan_file.h"
#include "runtime/clock.h"
#include "runtime/cuda/gemm_tuner.h"
#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/strided_gemm.h"

namespace sinter {
namespace {

Status belongs(const GemmRecord& record, const std::string& device, const std::string& library) {
  if (record.device == device && record.library == library) return {};
  return fail(
      fmt::format("the recorded decisions about matrix products are for {} with {}, this is "
                  "{} with {}",
                  printable(record.device), printable(record.library), device, library),
      {}, "tune on this device, or run without the record");
}

/// The first of the product's proposals for which `holds` is true.
template <typename Holds>
std::optional<size_t> proposal_of(const std::optional<CublasLtProduct>& product, Holds&& holds) {
  if (!product) return std::nullopt;
  const auto at = llvm::find_if(product->proposals(), holds);
  if (at == product->proposals().end()) return std::nullopt;
  return static_cast<size_t>(at - product->proposals().begin());
}

}  // namespace

Result<GemmChoice> TunedProducts::choice(const std::string& key,
                                         llvm::function_ref<Result<GemmChoice>()> tune) {
  const std::lock_guard lock(mutex_);
  if (const auto known = choices_.find(key); known != choices_.end()) return known->second;
  SINTER_LET(tuned, tune());
  return choices_[key] = std::move(tuned);
}

Result<std::shared_ptr<CudaGemm>> CudaGemm::create(CudaDevicePtr device,
                                                   llvm::ArrayRef<EmbeddedHeader> kernel_library,
                                                   GemmRecord record, GemmPolicy policy,
                                                   KernelCache cache, CudaApi::Stream stream) {
  SINTER_TRY(device->make_current());
  SINTER_LET(library, CublasLt::create());
  if (!record.empty()) SINTER_TRY(belongs(record, device->name(), library->name()));
  record.device = device->name();
  record.library = library->name();
  std::shared_ptr<CudaGemm> gemm(new CudaGemm);
  gemm->device_ = std::move(device);
  gemm->kernel_library_.assign(kernel_library.begin(), kernel_library.end());
  gemm->policy_ = policy;
  gemm->cache_ = std::move(cache);
  gemm->record_ = std::move(record);
  gemm->stream_ = stream;
  gemm->library_ = std::move(library);
  return gemm;
}

Status CudaGemm::prepare(const GemmStep& step, const GemmOperands& operands,
                         llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<int64_t> symbol_values) {
  SINTER_LET(calls, make_gemm_calls(step, operands, symbols, symbol_values));
  if (calls.places.empty()) return {};
  SINTER_TRY(device_->make_current());
  auto known = prepared_.find(calls.problem);
  if (known == prepared_.end()) {
    SINTER_LET(implementation, implement(calls.problem));
    known = prepared_.emplace(calls.problem, std::move(implementation)).first;
  }
  const Implementation& way = known->second;
  if (way.choice.kind != GemmChoice::Kind::cublaslt) return {};
  const size_t bytes = way.product->proposals()[way.proposal].workspace_bytes;
  return bytes <= operands.free.bytes ? Status() : make_workspace(bytes);
}

Status CudaGemm::run(const GemmStep& step, const GemmOperands& operands,
                     llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<int64_t> symbol_values,
                     const CudaStream& stream, bool overlaps) {
  SINTER_LET(calls, make_gemm_calls(step, operands, symbols, symbol_values));
  if (calls.places.empty()) return {};
  const auto it = prepared_.find(calls.problem);
  if (it == prepared_.end())
    return fail("a matrix product runs that was not prepared", "product " + calls.problem.key(),
                "this is a bug of the executor", ExitCode::internal_error);
  SINTER_TRY(device_->make_current());
  Implementation& way = it->second;
  for (const GemmPlace& place : calls.places)
    SINTER_TRY(way.choice.kind == GemmChoice::Kind::own
                   ? enqueue_own(it->first, way.kernel, place, stream, overlaps)
                   : enqueue_proposal(way, way.proposal, place, operands.free, stream));
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
  if (!problem.ascending) {
    SINTER_LET(product, library_product(problem, CublasLtProduct::kFewProposals));
    implementation.product = std::move(product);
    SINTER_TRY(decide(problem, implementation));
  }
  if (implementation.choice.kind == GemmChoice::Kind::own) {
    SINTER_LET(kernel, own_kernel(problem));
    implementation.kernel = kernel;
  }
  return implementation;
}

Result<std::optional<CublasLtProduct>> CudaGemm::library_product(const GemmProblem& problem,
                                                                 int wanted) const {
  std::optional<CublasLtProduct> product;
  if (const std::optional<CublasLtCall> call = cublaslt_call(problem)) {
    SINTER_LET(created, CublasLtProduct::create(library_, *call, problem, wanted));
    product = std::move(created);
  }
  return product;
}

Status CudaGemm::decide(const GemmProblem& problem, Implementation& implementation) {
  const std::string key = problem.key(), class_key = problem.class_key();
  auto recorded = record_.choices.find(key);
  if (recorded != record_.choices.end()) {
    if (take(recorded->second, implementation)) return {};
  } else if (recorded = record_.choices.find(class_key); recorded != record_.choices.end()) {
    SINTER_LET(taken, take_of_class(problem, recorded->second, implementation));
    if (taken) return {};
  }
  const std::string where = "product " + key;
  if (policy_ == GemmPolicy::frozen)
    return fail(recorded != record_.choices.end()
                    ? "the recorded algorithm is none that cuBLASLt proposes for this product"
                : key == class_key
                    ? "the record does not decide this matrix product"
                    : fmt::format("the record decides neither this matrix product nor its class {}",
                                  class_key),
                where, "make a record of these products, or run without one");
  record_.choices.erase(key);  // what it decides cannot be used, and it would come before the class
  if (policy_ == GemmPolicy::tune) {
    const auto begin = Clock::now();
    Result<GemmChoice> tuned = tuned_->choice(class_key, [&] { return tune(problem.longest()); });
    tuning_seconds_ += seconds_since(begin);
    if (!tuned) return tl::make_unexpected(std::move(tuned.error()));
    record_.choices[class_key] = *tuned;
    if (problem.open != GemmExtent::none) return adopt(problem, *tuned, implementation);
    SINTER_CHECK(take(*tuned, implementation), "the library proposes something else now");
    return {};
  }
  if (implementation.product && !implementation.product->proposals().empty() &&
      policy_ != GemmPolicy::strided)
    implementation.choice = implementation.product->proposals().front();
  record_.choices[key] = implementation.choice;
  return {};
}

bool CudaGemm::take(const GemmChoice& choice, Implementation& implementation) {
  if (choice.kind == GemmChoice::Kind::cublaslt) {
    const std::optional<size_t> proposal = proposal_of(
        implementation.product, [&](const auto& p) { return p.same_implementation(choice); });
    if (!proposal) return false;
    implementation.proposal = *proposal;
  }
  implementation.choice = choice;
  return true;
}

Result<bool> CudaGemm::take_of_class(const GemmProblem& problem, const GemmChoice& choice,
                                     Implementation& implementation) const {
  if (choice.kind == GemmChoice::Kind::cublaslt) {
    SINTER_LET(longest, library_product(problem.longest(), CublasLtProduct::kFewProposals));
    if (!proposal_of(longest, [&](const auto& p) { return p.same_implementation(choice); }))
      return false;
  }
  SINTER_TRY(adopt(problem, choice, implementation));
  return true;
}

Status CudaGemm::adopt(const GemmProblem& problem, const GemmChoice& choice,
                       Implementation& implementation) const {
  implementation.choice = GemmChoice();
  if (choice.kind == GemmChoice::Kind::own) return {};
  // The workspace may depend on the length.
  const auto alike = [&](const GemmChoice& other) { return other.algorithm == choice.algorithm; };
  std::optional<size_t> proposal = proposal_of(implementation.product, alike);
  if (!proposal) {
    SINTER_LET(more, library_product(problem, CublasLtProduct::kMaxProposals));
    proposal = proposal_of(more, alike);
    if (proposal) implementation.product = std::move(more);
  }
  if (!implementation.product || implementation.product->proposals().empty()) return {};
  implementation.proposal = proposal.value_or(0);
  implementation.choice = implementation.product->proposals()[implementation.proposal];
  return {};
}

Result<GemmChoice> CudaGemm::tune(const GemmProblem& problem) {
  Implementation implementation;
  SINTER_LET(product, library_product(problem, CublasLtProduct::kFewProposals));
  if (!product || product->proposals().empty()) return GemmChoice();
  implementation.product = std::move(product);
  // The allocator may give memory that work in the stream for which it was freed still uses.
  for (CudaApi::Stream stream : {stream_, CudaApi::Stream()})
    SINTER_TRY(CudaStream::borrow(device_, stream).synchronize("tuning a matrix product"));
  const std::vector<GemmChoice>& proposals = implementation.product->proposals();
  for (const GemmChoice& proposal : proposals) SINTER_TRY(make_workspace(proposal.workspace_bytes));
  std::vector<GemmCandidate> candidates;
  for (size_t i = 0; i < proposals.size(); ++i)
    candidates.push_back([&, i](const GemmPlace& place, const CudaStream& stream) {
      return enqueue_proposal(implementation, i, place, {}, stream);
    });
  // The longest of a class may be too large for one launch where the product itself is not.
  if (strided_gemm_blocks(problem)) {
    SINTER_LET(kernel, own_kernel(problem));
    candidates.push_back([&, kernel](const GemmPlace& place, const CudaStream& stream) {
      return enqueue_own(problem, kernel, place, stream);
    });
  }
  SINTER_LET(fastest, tune_gemm(device_, problem, candidates));
  GemmChoice choice;
  if (fastest.candidate < proposals.size()) choice = proposals[fastest.candidate];
  choice.seconds = fastest.seconds;
  return choice;
}

Result<std::string> CudaGemm::own_machine_code(const StridedGemmKernel& kernel) {
  if (const auto code = ready_.find(content_hash(kernel.text)); code != ready_.end())
    return code->second;
  SINTER_LET(nvrtc, find_nvrtc());
  const KernelSource source{kernel.name, kernel.text};
  SINTER_LET(compiled, compile_cached(nvrtc, cache_, source, kernel_library_, device_->arch()));
  return std::move(compiled.cubins[0].bytes);
}

Result<CudaApi::Kernel> CudaGemm::own_kernel(const GemmProblem& problem) {
  const StridedGemmKernel kernel = strided_gemm_kernel(problem);
  auto it = own_kernels_.find(kernel.name);
  if (it == own_kernels_.end()) {
    SINTER_LET(code, own_machine_code(kernel));
    SINTER_LET(library, CudaLibrary::load(device_, code, kernel.name));
    it = own_kernels_.emplace(kernel.name, std::move(library)).first;
  }
  return it->second.kernel(kernel.name);
}

Status CudaGemm::make_workspace(size_t bytes) {
  const size_t before = workspaces_.empty() ? 0 : workspaces_.back().bytes();
  if (bytes <= before) return {};
  const size_t wanted = std::min<size_t>(std::max(bytes, 2 * before), kGemmWorkspaceBytes);
  SINTER_LET(memory, CudaMemory::allocate(device_, wanted, "matrix products", stream_));
  workspaces_.push_back(std::move(memory));
  return {};
}

Status CudaGemm::enqueue_proposal(Implementation& implementation, size_t proposal,
                                  const GemmPlace& place, const FreeMemory& free,
                                  const CudaStream& stream) const {
  const size_t bytes = implementation.product->proposals()[proposal].workspace_bytes;
  const CudaAddress own = workspaces_.empty() ? 0 : workspaces_.back().address();
  return implementation.product->run(proposal, place, bytes <= free.bytes ? free.address : own,
                                     stream.handle());
}

Status CudaGemm::enqueue_own(const GemmProblem& problem, CudaApi::Kernel kernel,
                             const GemmPlace& place, const CudaStream& stream,
                             bool overlaps) const {
  GemmPlace pointers = place;
  StridedGemmShape shape = strided_gemm_shape(problem);
  void* parameters[] = {&pointers.a,    &pointers.b,        &pointers.c,
                        &pointers.bias, &pointers.residual, shape.data()};
  const auto blocks = static_cast<unsigned>(*strided_gemm_blocks(problem));
  Status launched = launch({.kernel = kernel,
                            .name = "strided_gemm",
                            .blocks = blocks,
                            .threads = kStridedGemmThreads,
                            .waits = overlaps},
                           parameters, stream);
  if (!launched)
    launched.error().where = fmt::format("product {}, {}", problem.key(), launched.error().where);
  return launched;
}

}  // namespace sinter
