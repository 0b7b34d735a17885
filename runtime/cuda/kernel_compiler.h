// Kernel text → machine code, from the cache where it can.
#pragma once

#include <map>

#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/nvrtc.h"

namespace sinter {

struct CompiledKernels {
  std::vector<Cubin> cubins;  // in the order of the sources
  size_t from_cache = 0;
};

/// Machine code that was made before and runs on the device, by content_hash() of the kernel's
/// text.
using MachineCodeByText = std::map<std::string, std::string>;

/// Machine code of every source for `arch`. The cache's key is the text, all headers, all options
/// and the library's identity. NVRTC is loaded only when an entry is missing.
Result<CompiledKernels> compile_cached(const NvrtcFile& nvrtc, const KernelCache& cache,
                                       llvm::ArrayRef<KernelSource> sources,
                                       llvm::ArrayRef<EmbeddedHeader> headers,
                                       const std::string& arch, unsigned threads = 0);

}  // namespace sinter
