#include "kernels/library.h"

namespace sinter {

llvm::ArrayRef<EmbeddedHeader> kernel_library() {
  static constexpr EmbeddedHeader headers[] = {
#include "kernels/library.inc"  // made by cmake/embed_headers.cmake
  };
  return headers;
}

}  // namespace sinter
