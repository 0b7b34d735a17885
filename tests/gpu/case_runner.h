// Both plans of a case on a CUDA device.
#pragma once

#include "gpu/kernel_store.h"
#include "gpu/planned_case.h"
#include "runtime/cuda/executable.h"

namespace sinter {

/// One thread's way to the device.
class CaseRunner {
 public:
  /// Products are computed by the library's first proposals, the same for both plans.
  static Result<CaseRunner> create(CudaDevicePtr device, const KernelStore& kernels);

  /// Runs both plans kCallsOfCase times, freed memory poisoned; an error unless all outputs and
  /// states are equal bit for bit after every call. With `check_host` every kernel's results must
  /// also have the bits of its evaluation on the host. The case's kernels are in the store.
  Status run(const PlannedCase& test, bool check_host) const;

 private:
  struct Plan;
  Result<Plan> load(const std::shared_ptr<const Program>& program, const PlannedCase& test,
                    std::shared_ptr<const CudaWeights>& weights) const;

  CudaDevicePtr device_;
  std::shared_ptr<CudaGemm> gemm_;
  const KernelStore* kernels_ = nullptr;
};

}  // namespace sinter
