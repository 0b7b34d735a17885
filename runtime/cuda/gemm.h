// Matrix products on a CUDA device: cuBLASLt where it has the product, else Sinter's own kernel, by
// the decision record.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/embedded_header.h"
#include "runtime/cuda/cublaslt_product.h"
#include "runtime/cuda/gemm_record.h"
#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/memory.h"

namespace sinter {

/// The policy for a product that the record does not decide. If the product has an open extent,
/// `tune` decides for all lengths of the class at once, at its longest (length_class.h), so that
/// the decision does not depend on which length comes first; `first` and `strided` decide for these
/// extents.
enum class GemmPolicy : uint8_t {
  frozen,  // an error
  first,   // the library's first proposal, or the strided kernel (strided_gemm.h) where it has none
  strided,  // the strided kernel: for sanitizers, which do not see all that the library writes
  tune,     // the fastest of the library's proposals and the strided kernel, by timing
};

struct StridedGemmKernel;

/// Decisions that GemmPolicy::tune made on a device. Those who share them compute a product with
/// the same bits. Thread-safe.
class TunedProducts {
 public:
  /// The decision of a key; `tune` makes it where there is none. One product is tuned at a time,
  /// since work beside it would disturb the timing.
  Result<GemmChoice> choice(const std::string& key, llvm::function_ref<Result<GemmChoice>()> tune);

 private:
  std::mutex mutex_;
  std::map<std::string, GemmChoice> choices_;
};

/// One for a device, shared by the models on it. One thread at a time, and its work in one stream
/// at a time: all products work in the same memory.
class CudaGemm {
 public:
  /// `record` holds the decisions made so far: none, or decisions of the same device and library
  /// version; else an error shows both versions. `kernel_library` has what the own kernel includes;
  /// compiled kernels go to `cache`. `stream`: the only one that products will run in, for the
  /// device's allocator; null: any.
  static Result<std::shared_ptr<CudaGemm>> create(CudaDevicePtr device,
                                                  llvm::ArrayRef<EmbeddedHeader> kernel_library,
                                                  GemmRecord record, GemmPolicy policy,
                                                  KernelCache cache = KernelCache::of_user(),
                                                  CudaApi::Stream stream = nullptr);

  /// Decides how the step's product is computed, if it is not ascending, and makes what run()
  /// needs. May allocate, compile and wait; not to be called while a stream records a graph. Only
  /// the alignment of the addresses matters. The record decides by the product's own key, else by
  /// its class's key. A recorded decision that cannot be used is an error with GemmPolicy::frozen,
  /// and otherwise made anew. A recorded algorithm can be used if the library proposes it for the
  /// product, or for the longest of the class; nothing of a record reaches the library, whose
  /// cublasLtMatmulAlgoCheck (13.1) crashes on algorithms that it did not make. A shorter length of
  /// the class for which the library does not propose the class's algorithm uses the library's
  /// first proposal.
  Status prepare(const GemmStep& step, const GemmOperands& operands, llvm::ArrayRef<Symbol> symbols,
                 llvm::ArrayRef<int64_t> symbol_values);
  /// Enqueues a prepared step: launches alone, no allocation, no waiting. `overlaps`: the own
  /// kernel may begin before what is ahead of it in the stream ends.
  Status run(const GemmStep& step, const GemmOperands& operands, llvm::ArrayRef<Symbol> symbols,
             llvm::ArrayRef<int64_t> symbol_values, const CudaStream& stream, bool overlaps = true);

  /// The decisions: those given to create() and those made since.
  const GemmRecord& record() const { return record_; }
  /// Forms of kernels; they are not this class's to use, only to keep with the others.
  void add_forms(const TunedForms& forms) {
    for (const auto& [family, own] : forms)
      for (const auto& [key, form] : own) record_.forms[family][key] = form;
  }
  /// Takes part in the decisions of others, before the first product is prepared.
  void share(std::shared_ptr<TunedProducts> tuned) { tuned_ = std::move(tuned); }
  /// Machine code of strided kernels, to be taken instead of compiling them.
  void add_machine_code(const MachineCodeByText& ready) {
    ready_.insert(ready.begin(), ready.end());
  }
  /// The seconds that GemmPolicy::tune has taken so far, the strided kernel's compilation included.
  double tuning_seconds() const { return tuning_seconds_; }

 private:
  /// How one problem is computed.
  struct Implementation {
    GemmChoice choice;
    std::optional<CublasLtProduct> product;  // where the library has the problem
    size_t proposal = 0;                     // choice cublaslt: which of the product's
    CudaApi::Kernel kernel = nullptr;        // choice own
  };

  CudaGemm() = default;
  Result<Implementation> implement(const GemmProblem& problem);
  Result<std::optional<CublasLtProduct>> library_product(const GemmProblem& problem,
                                                         int wanted) const;
  Status decide(const GemmProblem& problem, Implementation& implementation);
  static bool take(const GemmChoice& choice, Implementation& implementation);
  Result<bool> take_of_class(const GemmProblem& problem, const GemmChoice& choice,
                             Implementation& implementation) const;
  Status adopt(const GemmProblem& problem, const GemmChoice& choice,
               Implementation& implementation) const;
  Result<GemmChoice> tune(const GemmProblem& problem);
  Result<std::string> own_machine_code(const StridedGemmKernel& kernel);
  Result<CudaApi::Kernel> own_kernel(const GemmProblem& problem);
  /// Memory in which an algorithm works. What was there before stays: a recorded graph may have its
  /// address.
  Status make_workspace(size_t bytes);
  /// Works in `free` if that is enough, else in memory that make_workspace() made.
  Status enqueue_proposal(Implementation& implementation, size_t proposal, const GemmPlace& place,
                          const FreeMemory& free, const CudaStream& stream) const;
  Status enqueue_own(const GemmProblem& problem, CudaApi::Kernel kernel, const GemmPlace& place,
                     const CudaStream& stream, bool overlaps = true) const;

  CudaDevicePtr device_;
  std::vector<EmbeddedHeader> kernel_library_;
  GemmPolicy policy_ = GemmPolicy::first;
  KernelCache cache_{std::string()};
  MachineCodeByText ready_;
  GemmRecord record_;
  std::shared_ptr<TunedProducts> tuned_ = std::make_shared<TunedProducts>();
  double tuning_seconds_ = 0;
  CudaApi::Stream stream_ = nullptr;    // of create()
  std::vector<CudaMemory> workspaces_;  // ascending; products use the last
  std::shared_ptr<CublasLt> library_;
  std::map<std::string, CudaLibrary> own_kernels_;  // by name
  std::map<GemmProblem, Implementation> prepared_;
};

}  // namespace sinter
