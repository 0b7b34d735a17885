// The headers that generated kernels include, embedded when Sinter is built.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "plan/embedded_header.h"

namespace sinter {

/// codegen/kernels/*.cuh and ir/scalar_math.h as "sinter/<file>", sorted by name.
llvm::ArrayRef<EmbeddedHeader> kernel_library();

}  // namespace sinter
