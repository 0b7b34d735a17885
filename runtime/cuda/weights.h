// A program's weights on a device.
#pragma once

#include <functional>

#include "runtime/cuda/memory.h"
#include "runtime/executor.h"

namespace sinter {

class TensorSource;

/// One allocation; immutable, shared by the models that need the same weights.
class CudaWeights {
 public:
  /// Called from the loading thread with bytes done and in all.
  using Progress = std::function<void(size_t done, size_t total)>;

  /// Evaluates every weight function on the host, in several threads, and uploads the results
  /// through pinned memory. At most a few of the largest weights are in host memory at once.
  static Result<std::shared_ptr<const CudaWeights>> load(CudaDevicePtr device,
                                                         const Program& program,
                                                         const TensorSource* source,
                                                         const Progress& progress = {});

  CudaAddress address(size_t index) const { return memory_.address() + offsets_[index]; }
  size_t bytes() const { return memory_.bytes(); }
  /// True if `program` has the same weights.
  bool serves(const Program& program) const;

 private:
  CudaMemory memory_;
  std::vector<size_t> offsets_;
  std::vector<std::string> names_;  // with types: "l0.q.weight f16[64, 64]"
};

}  // namespace sinter
