// The one way in which kernels are launched.
#pragma once

#include "runtime/cuda/memory.h"

namespace sinter {

/// The most blocks of a grid of one dimension.
constexpr int64_t kMaxBlocks = INT32_MAX;

/// A kernel and its grid, of one dimension.
struct CudaLaunch {
  CudaApi::Kernel kernel = nullptr;
  std::string_view name;  // for messages
  unsigned blocks = 1;    // a multiple of `cluster`
  unsigned threads = 1;
  unsigned shared_bytes = 0;  // dynamic
  unsigned cluster = 1;
  /// The kernel itself waits for the kernels before it (kernels/common/launch.cuh), so that it may
  /// be launched before they end, on devices that can.
  bool waits = false;
};

/// Enqueues the kernel, with the addresses of its parameters.
Status launch(const CudaLaunch& launch, void** parameters, const CudaStream& stream);

/// Lets the kernel have that much dynamic shared memory. An error that names it if the device has
/// less.
Status allow_shared_bytes(CudaApi::Kernel kernel, std::string_view name, int64_t bytes,
                          const CudaDevice& device);

}  // namespace sinter
