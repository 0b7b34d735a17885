// Kernel text → machine code, through NVRTC. Needs no GPU.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "device/embedded_header.h"
#include "runtime/cuda/nvrtc_library.h"

namespace sinter {

/// A kernel to compile; `name` is for messages.
struct KernelSource {
  std::string_view name;
  std::string_view text;
};

/// Machine code of one architecture, as cuModuleLoadData takes it.
struct Cubin {
  std::string bytes;
};

/// All options of a compilation for `arch` ("sm_90a"): what the numerics contract fixes, the macros
/// of what such a device can do, the architecture.
std::vector<std::string> nvrtc_options(const std::string& arch);

/// Compiles one source for `arch` ("sm_90a"). Loads NVRTC. Text that does not compile is an
/// internal error that holds the compiler's log and the path of a file with the text; an NVRTC that
/// does not know `arch` is a device error.
Result<Cubin> compile_kernel(const NvrtcFile& nvrtc, const KernelSource& source,
                             llvm::ArrayRef<EmbeddedHeader> headers, const std::string& arch);

/// Compiles every source, up to `threads` at a time (0: one per processor), results in order; the
/// error of the first source that fails.
///
/// NVRTC 13.0 compiles in threads at once. Eight row kernels of 13 KB on two cores: 0.62 s in one
/// thread, 0.35 s in two, 0.34 s in two processes, 0.34 s as one program in one thread, where half
/// of the time is per program. So a kernel stays a program of its own, with its own cache entry.
Result<std::vector<Cubin>> compile_kernels(const NvrtcFile& nvrtc,
                                           llvm::ArrayRef<KernelSource> sources,
                                           llvm::ArrayRef<EmbeddedHeader> headers,
                                           const std::string& arch, unsigned threads = 0);

}  // namespace sinter
