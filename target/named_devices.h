// All devices that find_device knows.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "target/device.h"

namespace sinter {

/// In ascending order of compute capability.
llvm::ArrayRef<DeviceDescription> named_devices();

}  // namespace sinter
