// Which of several implementations of a matrix product is fastest on a device, by measurement.
#pragma once

#include <functional>
#include <vector>

#include "runtime/cuda_memory.h"
#include "runtime/gemm_record.h"

namespace sinter {

/// An implementation: `run` enqueues the product at a place; it can be recorded in a graph.
struct GemmCandidate {
  GemmChoice choice;
  std::function<Status(const GemmPlace&, const CudaStream&)> run;
};

/// The fastest candidate's choice, with its seconds per product, from memory that the caches do not
/// hold; of equals the first. Works on operands of its own, random and finite. A candidate whose
/// `run` fails is left out; the error is the last one's where all fail, or the device's.
Result<GemmChoice> tune_gemm(CudaDevicePtr device, const GemmProblem& problem,
                             const std::vector<GemmCandidate>& candidates);

}  // namespace sinter
