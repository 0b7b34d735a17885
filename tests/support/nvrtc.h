// NVRTC for test cases that compile real kernels. Beside others they are of doctest's suite
// "nvrtc", a test of its own (NVRTC of sinter_test), so that ctest calls it skipped where there is
// no NVRTC.
#pragma once

#include <doctest/doctest.h>

#include "runtime/cuda/nvrtc.h"

namespace sinter {

/// NVRTC of this machine; without one, null and the message by which ctest knows a skipped test.
inline const NvrtcFile* nvrtc_or_skip() {
  static const Result<NvrtcFile> found = find_nvrtc();
  if (found) return &*found;
  MESSAGE("skipped: " << found.error().message());
  return nullptr;
}

}  // namespace sinter
