// The headers that generated kernels include, embedded when Sinter is built.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "plan/embedded_header.h"

namespace sinter {

/// codegen/kernels/*.cuh as "sinter/<file>", and the headers of ir that host and device share as
/// "ir/<file>".
llvm::ArrayRef<EmbeddedHeader> kernel_library();

}  // namespace sinter
