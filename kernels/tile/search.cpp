#include "kernels/tile/search.h"

#include <algorithm>

namespace sinter {

std::optional<int64_t> stages_that_fit(int64_t bytes, int64_t stage_bytes, int64_t least,
                                       int64_t most) {
  if (bytes < least * stage_bytes) return std::nullopt;
  return std::min(most, bytes / stage_bytes);
}

}  // namespace sinter
