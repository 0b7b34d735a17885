// Which of several implementations of a matrix product is fastest on a device, by measurement, and
// right.
#pragma once

#include <functional>
#include <vector>

#include "runtime/cuda/gemm_problem.h"
#include "runtime/cuda/memory.h"

namespace sinter {

/// An implementation: enqueues the product at a place. What it enqueues can be recorded in a graph.
using GemmCandidate = std::function<Status(const GemmPlace&, const CudaStream&)>;

struct FastestGemm {
  size_t candidate = 0;
  double seconds = 0;  // per product, from memory that the caches do not hold
};

/// Times the candidates on operands of its own, random and finite; of equals the first wins. The
/// fastest must compute a known product (known_product.h) to the last bit: library kernels that
/// split k are known to leave out a part of it. One that does not is dropped, and the next fastest
/// is asked. A candidate that fails is left out. Where none is left, the error says what the last
/// dropped or failed one did; or it is the device's.
Result<FastestGemm> tune_gemm(CudaDevicePtr device, const GemmProblem& problem,
                              const std::vector<GemmCandidate>& candidates);

}  // namespace sinter
