// Names for the timeline of NVIDIA's tools (Nsight Systems, Nsight Compute): a range of the host's
// time around each step, called after the IR values that it computes.
//
// NVTX is a protocol of headers: they load the library that NVTX_INJECTION64_PATH names, which the
// tools set. Compiled in where CMake finds the headers (nvtx3 of a CUDA toolkit); elsewhere, and
// where no tool listens, a range costs one test.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <string>

namespace sinter {

/// Whether a tool asks for ranges. Constant while the program runs.
bool nvtx_listens();

/// From here to the end of the scope, in this thread. Ranges nest.
class NvtxRange {
 public:
  /// Called "a, b, c".
  explicit NvtxRange(llvm::ArrayRef<std::string> values) : open_(nvtx_listens()) {
    if (open_) push(values);
  }
  ~NvtxRange() {
    if (open_) pop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  static void push(llvm::ArrayRef<std::string> values);
  static void pop();
  bool open_;
};

}  // namespace sinter
