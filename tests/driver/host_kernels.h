// Programs on the driver of tests/runtime/fake_driver.cpp, their kernels evaluated on the host:
// what runs on a device is tried without one, all but the kernels' text.
#pragma once

#include "runtime/cuda/executable.h"
#include "runtime/fake_driver.h"

namespace sinter {

/// Machine code of the program's kernels for that driver: loaded as such, a kernel is evaluated on
/// the host.
MachineCodeByText host_machine_code(const std::shared_ptr<const Program>& program);

/// The program on device 0 of the fake driver, which must be loaded. No matrix products.
Result<std::shared_ptr<const Executable>> load_on_fake(std::shared_ptr<const Program> program,
                                                       const TensorSource* source);

}  // namespace sinter
