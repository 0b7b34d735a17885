// Many kernels as one CUDA source: the compiler reads the kernel library once for all of them.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <string>

#include "plan/program.h"

namespace sinter {

/// Every kernel's text in a namespace of its own, includes before all. The functions keep their
/// names, which have C linkage: no name may occur twice.
std::string kernel_unit(llvm::ArrayRef<const Kernel*> kernels);

}  // namespace sinter
