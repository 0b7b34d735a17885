#include "runtime/cuda/compared_orders.h"

#include <span>

#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/launch.h"

namespace sinter {

KernelSource compared_orders_kernel() {
  return {"compare_orders", R"(#include "kernels/tile/sums/compared_orders.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(128) compare_orders(unsigned* differing) {
  __shared__ ComparedOrdersMemory memory;
  ComparedOrders<f16>().run(differing, memory);
  __syncthreads();
  ComparedOrders<bf16>().run(differing, memory);
}
)"};
}

Status check_orders(const CudaDevicePtr& device, llvm::ArrayRef<EmbeddedHeader> headers,
                    const KernelCache& cache) {
  if (device->arch() != "sm_90a") return {};
  const auto nvrtc = find_nvrtc();
  if (!nvrtc) return {};
  const KernelSource source = compared_orders_kernel();
  // An NVRTC that does not know the device: kernels that need it say so themselves.
  const auto compiled = compile_cached(*nvrtc, cache, source, headers, device->arch());
  if (!compiled) return {};
  SINTER_LET(library, CudaLibrary::load(device, compiled->cubins[0].bytes, source.name));
  SINTER_LET(kernel, library.kernel(std::string(source.name)));
  SINTER_LET(stream, CudaStream::create(device));
  SINTER_LET(memory, CudaMemory::allocate(device, sizeof(unsigned), "a count"));
  SINTER_TRY(stream.fill(memory.address(), 0, sizeof(unsigned)));
  CudaAddress address = memory.address();
  void* parameters[] = {&address};
  SINTER_TRY(launch({.kernel = kernel, .name = source.name, .blocks = 1, .threads = 128},
                    parameters, stream));
  unsigned differing = 0;
  SINTER_TRY(stream.copy_to_host(std::as_writable_bytes(std::span(&differing, 1)), address));
  SINTER_TRY(stream.synchronize(source.name));
  if (differing == 0) return {};
  return fail(fmt::format("mma.sync and wgmma add products in different orders: {} of 16384 sums "
                          "differ, so that an invariant plan would not keep its promise",
                          differing),
              fmt::format("device {} ({})", device->ordinal(), device->name()),
              "compile without --invariant", ExitCode::device);
}

}  // namespace sinter
