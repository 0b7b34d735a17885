#include "codegen/kernel_library.h"

namespace sinter {

llvm::ArrayRef<EmbeddedHeader> kernel_library() {
  static constexpr EmbeddedHeader headers[] = {
#include "codegen/kernel_library.inc"  // made by cmake/embed_headers.cmake
  };
  return headers;
}

}  // namespace sinter
