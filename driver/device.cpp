#include "driver/device.h"

#include "driver/integers.h"
#include "kernels/library.h"
#include "runtime/cuda/executable.h"
#include "runtime/host/executable.h"

namespace sinter {
namespace {

/// N of "cuda:N", 0 of "cuda".
std::optional<int> parse_ordinal(std::string_view device) {
  if (device == "cuda") return 0;
  if (!device.starts_with("cuda:")) return std::nullopt;
  device.remove_prefix(5);
  const auto ordinal = parse_integer<int32_t>(device, "--device", {.least = 0});
  if (!ordinal) return std::nullopt;
  return *ordinal;
}

}  // namespace

Result<DeviceChoice> choose_device(std::string_view name) {
  if (name == "auto") {
    const Result<int> count = cuda_device_count();
    if (!count) return DeviceChoice{std::nullopt, count.error().what};
    if (*count == 0) return DeviceChoice{std::nullopt, "the driver shows no GPU"};
    return DeviceChoice{0, fmt::format("the first of {} GPU{}", *count, *count == 1 ? "" : "s")};
  }
  const std::optional<int> ordinal = parse_ordinal(name);
  if (name != "cpu" && !ordinal)
    return fail(fmt::format("no device is called \"{}\"", printable(name)), "--device",
                "give auto, cpu, cuda or cuda:N", ExitCode::usage);
  return DeviceChoice{ordinal, "as asked"};
}

std::shared_ptr<Device> Device::cpu() { return std::shared_ptr<Device>(new Device); }

Result<std::shared_ptr<Device>> Device::open(const DeviceChoice& choice) {
  if (!choice.gpu) return cpu();
  SINTER_LET(cuda, CudaDevice::open(*choice.gpu));
  std::shared_ptr<Device> device(new Device);
  device->cuda_ = std::move(cuda);
  return device;
}

Result<std::shared_ptr<Device>> Device::gpu(const GpuOptions& options) {
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
  std::shared_ptr<Device> device(new Device);
  device->cuda_ = std::move(cuda);
  device->keeps_context_ = true;
  return device;
}

Device::~Device() {
  const CudaContextGuard guard(keeps_context_ ? cuda_api() : nullptr);
  cuda_.reset();
}

std::string Device::name() const {
  return cuda_ ? fmt::format("cuda:{} ({})", cuda_->ordinal(), cuda_->name()) : "cpu";
}

std::string Device::target() const { return cuda_ ? cuda_->arch() : std::string(); }

Result<std::vector<std::shared_ptr<const Executable>>> Device::load(
    llvm::ArrayRef<std::shared_ptr<const Program>> programs,
    const ExecutableOptions& options) const {
  std::vector<std::shared_ptr<const Executable>> executables;
  std::shared_ptr<const CudaWeights> weights;
  for (const auto& program : programs) {
    if (!cuda_) {
      SINTER_LET(host, HostExecutable::load(program, options.source, options.progress));
      executables.push_back(std::make_shared<HostExecutable>(std::move(host)));
      continue;
    }
    if (!weights || !weights->serves(*program)) {
      SINTER_LET(loaded, CudaWeights::load(cuda_, *program, options.source, options.progress,
                                           options.places));
      weights = std::move(loaded);
    }
    const MachineCodeByText none;
    SINTER_LET(executable,
               CudaExecutable::load(program, cuda_, options.gemm, weights, kernel_library(),
                                    KernelCache::of_user(),
                                    options.machine_code ? *options.machine_code : none));
    executables.push_back(std::move(executable));
  }
  return executables;
}

}  // namespace sinter
