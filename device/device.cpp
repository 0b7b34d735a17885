#include "device/device.h"

#include "device/named_devices.h"
#include "ir/never_destroyed.h"

namespace sinter {
namespace {

// Peak numbers of the vendor's data sheets, for one representative board each: A100 80GB, RTX 3090,
// L40S, H100 PCIe, H200, B200, RTX 5090. Cost estimates compare with them; nothing that a kernel
// computes depends on them.
const std::vector<DeviceDescription>& devices() {
  static const auto& devices = never_destroyed([] {
    return std::vector<DeviceDescription>{
        {.name = "sm_80",
         .has = capabilities_of("sm_80"),
         .multiprocessors = 108,
         .max_shared_bytes = 163 * 1024,
         .memory_bytes_per_s = 2.0e12,
         .cache_bytes = 4.0e7,
         .cache_bytes_per_s = 4.0e12,
         .tensor_flops_per_s = 3.12e14,
         .tensor_peak_flops_per_s = 3.12e14,
         .float_flops_per_s = 1.95e13,
         .launch_s = 2.5e-6},
        {.name = "sm_86",
         .has = capabilities_of("sm_86"),
         .multiprocessors = 82,
         .max_shared_bytes = 99 * 1024,
         .memory_bytes_per_s = 9.36e11,
         .cache_bytes = 6.0e6,
         .cache_bytes_per_s = 2.0e12,
         .tensor_flops_per_s = 7.1e13,
         .tensor_peak_flops_per_s = 7.1e13,
         .float_flops_per_s = 3.56e13,
         .launch_s = 2.5e-6},
        {.name = "sm_89",
         .has = capabilities_of("sm_89"),
         .multiprocessors = 142,
         .max_shared_bytes = 99 * 1024,
         .memory_bytes_per_s = 8.64e11,
         .cache_bytes = 9.6e7,
         .cache_bytes_per_s = 4.0e12,
         .tensor_flops_per_s = 3.62e14,
         .tensor_peak_flops_per_s = 3.62e14,
         .float_flops_per_s = 9.16e13,
         .launch_s = 2.5e-6},
        {.name = "sm_90",
         .has = capabilities_of("sm_90"),
         .multiprocessors = 114,
         .max_shared_bytes = 227 * 1024,
         .memory_bytes_per_s = 2.0e12,
         .cache_bytes = 5.0e7,
         .cache_bytes_per_s = 5.0e12,
         .tensor_flops_per_s = 7.5e14,
         .tensor_peak_flops_per_s = 7.5e14,
         .float_flops_per_s = 5.1e13,
         .launch_s = 2.0e-6},
        {.name = "sm_90a",
         .has = capabilities_of("sm_90a"),
         .multiprocessors = 132,
         .max_shared_bytes = 227 * 1024,
         .memory_bytes_per_s = 4.2e12,
         .cache_bytes = 5.0e7,
         .cache_bytes_per_s = 5.5e12,
         .tensor_flops_per_s = 7.5e14,
         .tensor_peak_flops_per_s = 9.89e14,
         .float_flops_per_s = 6.7e13,
         .launch_s = 2.0e-6},
        {.name = "sm_100",
         .has = capabilities_of("sm_100"),
         .multiprocessors = 148,
         .max_shared_bytes = 227 * 1024,
         .memory_bytes_per_s = 7.7e12,
         .cache_bytes = 1.26e8,
         .cache_bytes_per_s = 1.0e13,
         .tensor_flops_per_s = 2.25e15,
         .tensor_peak_flops_per_s = 2.25e15,
         .float_flops_per_s = 8.0e13,
         .launch_s = 2.0e-6},
        {.name = "sm_120",
         .has = capabilities_of("sm_120"),
         .multiprocessors = 170,
         .max_shared_bytes = 99 * 1024,
         .memory_bytes_per_s = 1.79e12,
         .cache_bytes = 9.6e7,
         .cache_bytes_per_s = 6.0e12,
         .tensor_flops_per_s = 2.1e14,
         .tensor_peak_flops_per_s = 2.1e14,
         .float_flops_per_s = 1.05e14,
         .launch_s = 2.0e-6},
    };
  });
  return devices;
}

}  // namespace

llvm::ArrayRef<DeviceDescription> named_devices() { return devices(); }

double flops_per_s(const DeviceDescription& device, DType operands) {
  return dtype_info(operands).bits <= 16 ? device.tensor_flops_per_s : device.float_flops_per_s;
}

double peak_flops_per_s(const DeviceDescription& device, DType operands) {
  return dtype_info(operands).bits <= 16 ? device.tensor_peak_flops_per_s
                                         : device.float_flops_per_s;
}

Result<DeviceDescription> find_device(std::string_view name) {
  std::string known;
  for (const DeviceDescription& device : devices()) {
    if (device.name == name) return device;
    known += (known.empty() ? "" : ", ") + device.name;
  }
  return fail(fmt::format("unknown device description '{}'", printable(name)), {},
              fmt::format("choose one of {}", known), ExitCode::usage);
}

}  // namespace sinter
