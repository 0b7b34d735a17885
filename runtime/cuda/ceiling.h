// The measured peak rates of a device: the ceilings that other figures are shares of. Compare with
// figures of the same run alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device/embedded_header.h"
#include "ir/types.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/memory.h"

namespace sinter {

struct Ceiling {
  double per_s = 0;             // bytes or floating-point operations a second, of the median sample
  double amount = 0;            // bytes or operations of one call
  std::vector<double> seconds;  // of one call, per repeat, in order
  std::string by;  // what reached it: "driver", "kernel", or the product's implementation
};

/// Calls are recorded in one graph and timed by events around its launches, so that the host takes
/// no part. Every call has memory of its own, in turns over at least 3 places and 4 times the
/// second-level cache (fewer where memory is short), and that cache is emptied before each repeat.
/// Memory holds random numbers.
class CudaCeilings {
 public:
  static constexpr int kRepeats = 11;

  /// Compiles and loads the kernels. `kernel_library` has what they include.
  static Result<CudaCeilings> create(CudaDevicePtr device,
                                     llvm::ArrayRef<EmbeddedHeader> kernel_library,
                                     const KernelCache& cache = KernelCache::of_user());

  /// Copies that move `bytes` in all, half read and half written: the better of the driver's copy
  /// and a kernel's. `bytes` is rounded down to a multiple of 32 and must be at least that.
  Result<Ceiling> copy(size_t bytes) const;
  /// A kernel that reads `bytes`, rounded down to a multiple of 16, at least that.
  Result<Ceiling> read(size_t bytes) const;
  /// The kernel that reads, over the same `bytes` in every call: a fourth of the second-level cache
  /// or less stays in it.
  Result<Ceiling> cached_read(size_t bytes) const;
  /// Seconds of one more launch in a chain: of a kernel that reads 16 bytes.
  Result<double> launch_seconds() const;
  /// Products of n x n matrices of a float type, B transposed as a linear's weight, by the fastest
  /// implementation that the tuner finds. 2 n^3 operations a call. The first repeats are at a
  /// higher clock than later ones, which the board's power limits.
  Result<Ceiling> gemm(DType dtype, int64_t n, int repeats = kRepeats) const;

 private:
  struct Places;
  using Call = std::function<Status(size_t index)>;
  CudaCeilings() = default;
  Result<Places> make_places(size_t bytes) const;
  Status launch(CudaApi::Kernel kernel, size_t words, void** parameters) const;
  Status launch_copy(CudaAddress from, CudaAddress to, size_t bytes) const;
  Status launch_read(CudaAddress from, size_t bytes, CudaAddress out) const;
  /// Seconds of one call, per repeat.
  Result<std::vector<double>> time_calls(size_t calls, const Call& call,
                                         int repeats = kRepeats) const;

  CudaDevicePtr device_;
  llvm::ArrayRef<EmbeddedHeader> kernel_library_;
  CudaLibrary library_;
  CudaApi::Kernel copy_ = nullptr, read_ = nullptr;
  CudaStream stream_;
  CudaMemory flushed_;  // read to empty the second-level cache
};

}  // namespace sinter
