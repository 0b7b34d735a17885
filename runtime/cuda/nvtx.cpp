#include "runtime/cuda/nvtx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#ifdef SINTER_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace sinter {

#ifdef SINTER_NVTX

bool nvtx_listens() {
  static const bool listens = [] {
    const char* library = std::getenv("NVTX_INJECTION64_PATH");
    return library != nullptr && *library != 0;
  }();
  return listens;
}

void NvtxRange::push(llvm::ArrayRef<std::string> values) {
  nvtxRangePushA(fmt::format("{}", fmt::join(values.begin(), values.end(), ", ")).c_str());
}

void NvtxRange::pop() { nvtxRangePop(); }

#else

bool nvtx_listens() { return false; }
void NvtxRange::push(llvm::ArrayRef<std::string>) {}
void NvtxRange::pop() {}

#endif

}  // namespace sinter
