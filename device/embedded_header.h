// A header of the kernel library, as the compiler of kernel text needs it.
#pragma once

#include <string_view>

namespace sinter {

/// `name` as it is included, e.g. "kernels/common/reduce.cuh". Both outlive the program's run.
struct EmbeddedHeader {
  std::string_view name;
  std::string_view text;
};

}  // namespace sinter
