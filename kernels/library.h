// The headers that generated kernels include, embedded when Sinter is built.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "device/embedded_header.h"

namespace sinter {

/// The *.cuh of this room and the headers of ir that host and device share, each under its path
/// from the root.
llvm::ArrayRef<EmbeddedHeader> kernel_library();

}  // namespace sinter
