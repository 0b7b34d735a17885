// One matrix product in cuBLASLt: its descriptors, the algorithms for it, its execution.
#pragma once

#include <vector>

#include "runtime/cublaslt.h"
#include "runtime/cublaslt_call.h"
#include "runtime/gemm_record.h"

namespace sinter {

/// Move-only. All errors name the library's call, its status and the problem's key. The context of
/// the library's device is current in the calling thread.
class CublasLtProduct {
 public:
  /// `call` is that of `problem`. Asks the library for algorithms.
  static Result<CublasLtProduct> create(std::shared_ptr<CublasLt> library, const CublasLtCall& call,
                                        const GemmProblem& problem);
  CublasLtProduct(CublasLtProduct&& other) noexcept { swap(other); }
  CublasLtProduct& operator=(CublasLtProduct&& other) noexcept { return swap(other), *this; }
  ~CublasLtProduct();

  /// The algorithms that the library proposes, at most 8, the one that it expects to be fastest
  /// first; none where it refuses the product. All give the same bits in every run, accumulate in
  /// float32 and round once. One version of the library proposes the same for the same problem.
  const std::vector<GemmChoice>& proposals() const { return proposals_; }
  /// Enqueues a proposal; no allocation, no synchronization. `workspace` holds as many bytes as its
  /// choice says.
  Status run(size_t proposal, const GemmPlace& place, CudaAddress workspace,
             CudaApi::Stream stream);

 private:
  CublasLtProduct() = default;
  void swap(CublasLtProduct& other);
  Status make_matmul();
  Status make_layout(const CublasLtCall::Matrix& matrix, CublasLtApi::Layout& layout) const;
  Status set_preferences(CublasLtApi::Preference preference) const;
  Status set_bias(CudaAddress bias);
  Status make_proposals();
  Result<CublasLtAlgorithm> describe(const CublasLtApi::Algorithm& algorithm) const;
  Status status(int code, std::string_view call) const;

  std::shared_ptr<CublasLt> library_;
  CublasLtCall call_;
  std::string key_;
  CublasLtApi::Matmul matmul_ = nullptr;
  CublasLtApi::Layout a_ = nullptr, b_ = nullptr, d_ = nullptr;
  CudaAddress bias_ = 0;  // set in matmul_
  uint32_t reductions_ = 0;  // how split sums may be joined
  std::vector<GemmChoice> proposals_;
  std::vector<CublasLtApi::Algorithm> algorithms_;  // of the proposals
};

}  // namespace sinter
