// One matrix product in cuBLASLt: its descriptors, the algorithms for it, its execution.
#pragma once

#include <vector>

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cublaslt_call.h"
#include "runtime/cuda/gemm_record.h"
#include "runtime/unique_handle.h"

namespace sinter {

/// Move-only. All errors name the library's call, its status and the problem's key. The context of
/// the library's device is current in the calling thread.
class CublasLtProduct {
 public:
  /// `call` belongs to `problem`. Asks the library for at most `wanted` algorithms.
  static Result<CublasLtProduct> create(std::shared_ptr<CublasLt> library, const CublasLtCall& call,
                                        const GemmProblem& problem, int wanted = kFewProposals);

  /// How many algorithms a decision takes one of, and how many it is sought among where it was made
  /// for another length.
  static constexpr int kFewProposals = 8, kMaxProposals = 32;

  /// The algorithms that the library proposes, the one that it expects to be fastest first; none
  /// where it refuses the product. All give the same bits in every run, accumulate in float32 and
  /// round once (but see sums_may_round_twice). One version of the library proposes the same for
  /// the same problem.
  const std::vector<GemmChoice>& proposals() const { return proposals_; }
  /// Enqueues a proposal; no allocation, no synchronization. `workspace` holds as many bytes as its
  /// choice says.
  Status run(size_t proposal, const GemmPlace& place, CudaAddress workspace,
             CudaApi::Stream stream);

 private:
  using Matmul = UniqueHandle<CublasLtApi::Matmul, decltype(CublasLtApi::matmul_destroy)>;
  using Layout = UniqueHandle<CublasLtApi::Layout, decltype(CublasLtApi::layout_destroy)>;

  explicit CublasLtProduct(std::shared_ptr<CublasLt> library);
  Status make_matmul();
  Status make_layout(const CublasLtCall::Matrix& matrix, Layout& layout) const;
  Status set_preferences(CublasLtApi::Preference preference) const;
  Status set_bias(CudaAddress bias);
  Status make_proposals(int wanted);
  Result<CublasLtAlgorithm> describe(const CublasLtApi::Algorithm& algorithm) const;
  Status status(int code, std::string_view call) const;

  std::shared_ptr<CublasLt> library_;
  CublasLtCall call_;
  std::string key_;
  Matmul matmul_;
  Layout a_, b_, d_;
  CudaAddress bias_ = 0;     // set in matmul_
  uint32_t reductions_ = 0;  // how split sums may be joined
  std::vector<GemmChoice> proposals_;
  std::vector<CublasLtApi::Algorithm> algorithms_;  // of the proposals
};

}  // namespace sinter
