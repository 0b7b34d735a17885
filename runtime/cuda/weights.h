// A program's weights on a device.
#pragma once

#include "runtime/cuda/memory.h"
#include "runtime/executable.h"

namespace sinter {

class TensorSource;

/// One allocation, and memory of others; immutable, shared by the executables that need the same
/// weights.
class CudaWeights {
 public:
  /// Evaluates every weight function on the host, in several threads, and uploads the results
  /// through pinned memory. At most a few of the largest weights are in host memory at once.
  /// `given`: where weights stand already, by number, 0 for others; that memory must stay, aligned
  /// to kPointerAlignment. Empty: none.
  static Result<std::shared_ptr<const CudaWeights>> load(CudaDevicePtr device,
                                                         const Program& program,
                                                         const TensorSource* source,
                                                         const WeightProgress& progress = {},
                                                         llvm::ArrayRef<CudaAddress> given = {});

  CudaAddress address(size_t index) const { return addresses_[index]; }
  /// The bytes of its own memory.
  size_t bytes() const { return memory_.bytes(); }
  /// True if `program` has the same weights.
  bool serves(const Program& program) const;

 private:
  CudaMemory memory_;
  std::vector<CudaAddress> addresses_;
  std::vector<std::string> names_;  // with types: "l0.q.weight f16[64, 64]"
};

}  // namespace sinter
