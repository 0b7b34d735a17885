#include "device/device.h"

#include "device/named_devices.h"

namespace sinter {
namespace {

// Peak numbers of the vendor's data sheets, for one representative board each: A100 80GB, RTX 3090,
// L40S, H100 PCIe, H200, B200, RTX 5090. Cost estimates compare with them; nothing that a kernel
// computes depends on them.
const DeviceDescription kDevices[] = {
    {"sm_80", 80, 108, 65536, 48 * 1024, 1024, 2.0e12, 3.12e14, 2.5e-6, 163 * 1024, 4.0e12},
    {"sm_86", 86, 82, 65536, 48 * 1024, 1024, 9.36e11, 7.1e13, 2.5e-6, 99 * 1024, 2.0e12},
    {"sm_89", 89, 142, 65536, 48 * 1024, 1024, 8.64e11, 3.62e14, 2.5e-6, 99 * 1024, 4.0e12},
    {"sm_90", 90, 114, 65536, 48 * 1024, 1024, 2.0e12, 7.5e14, 2.0e-6, 227 * 1024, 5.0e12},
    {"sm_90a", 90, 132, 65536, 48 * 1024, 1024, 4.2e12, 7.5e14, 2.0e-6, 227 * 1024, 5.5e12},
    {"sm_100", 100, 148, 65536, 48 * 1024, 1024, 7.7e12, 2.25e15, 2.0e-6, 227 * 1024, 1.0e13},
    {"sm_120", 120, 170, 65536, 48 * 1024, 1024, 1.79e12, 2.1e14, 2.0e-6, 99 * 1024, 6.0e12},
};

}  // namespace

llvm::ArrayRef<DeviceDescription> named_devices() { return kDevices; }

Result<DeviceDescription> find_device(std::string_view name) {
  std::string known;
  for (const DeviceDescription& device : kDevices) {
    if (device.name == name) return device;
    known += (known.empty() ? "" : ", ") + device.name;
  }
  return fail(fmt::format("unknown device description '{}'", printable(name)), {},
              fmt::format("choose one of {}", known), ExitCode::usage);
}

}  // namespace sinter
