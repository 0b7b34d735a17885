// Whether a device's instructions add products in one order, as invariant plans need it.
#pragma once

#include "device/embedded_header.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/nvrtc.h"

namespace sinter {

/// The kernel: it adds to its one argument, an unsigned in the device's memory, how many sums
/// differ (kernels/tile/sums/compared_orders.cuh).
KernelSource compared_orders_kernel();

/// An error on a device whose chains of mma.sync and of wgmma have other bits for the same
/// operands. Nothing where the device has no wgmma, so that no plan mixes the two, or where no
/// NVRTC compiles for it: a plan with machine code runs without one. `headers` are the kernel
/// library. Waits for the device.
Status check_orders(const CudaDevicePtr& device, llvm::ArrayRef<EmbeddedHeader> headers,
                    const KernelCache& cache);

}  // namespace sinter
