// All devices that find_device knows.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "device/device.h"

namespace sinter {

/// In ascending order of compute capability.
llvm::ArrayRef<DeviceDescription> named_devices();

}  // namespace sinter
