// NVRTC for test cases that compile real kernels. Beside others they are of doctest's suite
// "nvrtc", a test of its own (NVRTC of sinter_test), so that ctest calls it skipped where there is
// no NVRTC.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>

#include "kernels/library.h"
#include "runtime/cuda/kernel_compiler.h"

namespace sinter {

/// NVRTC of this machine; without one, null and the message by which ctest knows a skipped test.
inline const NvrtcFile* nvrtc_or_skip() {
  static const Result<NvrtcFile> found = find_nvrtc();
  if (found) return &*found;
  MESSAGE("skipped: " << found.error().message());
  return nullptr;
}

/// Compiles kernels with the library's headers. What has compiled stays in the folder that
/// SINTER_SHIM_CACHE names, under all that it depends on, and is not compiled again.
inline Status compile_or_find(const NvrtcFile& nvrtc, llvm::ArrayRef<KernelSource> sources,
                              const std::string& arch) {
  const char* kept = std::getenv("SINTER_SHIM_CACHE");
  SINTER_TRY(compile_cached(nvrtc, KernelCache(kept ? kept : ""), sources, kernel_library(), arch));
  return {};
}

}  // namespace sinter
