#include "driver/calls/device.h"

namespace sinter {

std::shared_ptr<CallDevice> CallDevice::cpu() {
  return std::shared_ptr<CallDevice>(new CallDevice);
}

Result<std::shared_ptr<CallDevice>> CallDevice::gpu(const GpuOptions& options) {
  if (!options.allocate != !options.release)
    return fail(
        fmt::format("an allocator {} release and {} allocate", options.release ? "with" : "without",
                    options.allocate ? "with" : "without"),
        "the device's options", "give both functions or none", ExitCode::usage);
  SINTER_LET(api, load_cuda());
  const CudaContextGuard guard(api);
  CudaDeviceOptions own;
  own.context = static_cast<CudaApi::Context>(options.context);
  own.allocator = {options.allocate, options.release};
  SINTER_LET(cuda, CudaDevice::open(options.ordinal, std::move(own)));
  std::shared_ptr<CallDevice> device(new CallDevice);
  device->cuda_ = std::move(cuda);
  return device;
}

CallDevice::~CallDevice() {
  const CudaContextGuard guard(cuda_api());
  cuda_.reset();
}

std::string CallDevice::name() const {
  return cuda_ ? fmt::format("cuda:{} ({})", cuda_->ordinal(), cuda_->name()) : "cpu";
}

std::string CallDevice::target() const { return cuda_ ? cuda_->arch() : std::string(); }

}  // namespace sinter
