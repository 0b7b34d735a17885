#include "runtime/cuda/launch.h"

#include <llvm/ADT/SmallVector.h>

namespace sinter {
namespace {

constexpr int kMaxDynamicSharedSizeBytes = 8;  // CUfunction_attribute

using Attribute = CudaLaunchAttribute;

}  // namespace

Status launch(const CudaLaunch& launch, void** parameters, const CudaStream& stream) {
  const CudaDevice& device = *stream.device();
  llvm::SmallVector<Attribute, 2> attributes;
  if (launch.cluster > 1)
    attributes.push_back({Attribute::Id::cluster_dimension, {launch.cluster, 1, 1}});
  if (launch.waits && device.overlaps_launches())
    attributes.push_back({Attribute::Id::programmatic_stream_serialization, {1}});
  const CudaLaunchConfig config{{launch.blocks, 1, 1}, {launch.threads, 1, 1},
                                launch.shared_bytes,   stream.handle(),
                                attributes.data(),     static_cast<unsigned>(attributes.size())};
  const int code = device.api().launch(&config, launch.kernel, parameters, nullptr);
  if (code == 0) return {};
  return device.check(code, fmt::format("cuLaunchKernelEx {}", launch.name));
}

Status allow_shared_bytes(CudaApi::Kernel kernel, std::string_view name, int64_t bytes,
                          const CudaDevice& device) {
  if (bytes > device.shared_bytes_per_block())
    return fail(fmt::format("kernel {} needs {} bytes of shared memory a block, the device has {}",
                            name, bytes, device.shared_bytes_per_block()),
                fmt::format("device {} ({})", device.ordinal(), device.name()),
                "compile the plan for this device", ExitCode::device);
  // A kernel may declare more, and without the attribute both together have 48 KiB at most.
  if (bytes == 0) return {};
  SINTER_TRY(device.make_current());
  return device.check(
      device.api().kernel_set_attribute(kMaxDynamicSharedSizeBytes, static_cast<int>(bytes), kernel,
                                        device.handle()),
      fmt::format("cuKernelSetAttribute {}", name));
}

}  // namespace sinter
