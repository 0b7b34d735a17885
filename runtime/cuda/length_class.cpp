#include "runtime/cuda/length_class.h"

#include <bit>

namespace sinter {
namespace {

constexpr int64_t kMaxAlone = 64, kParts = 4, kMax = int64_t{1} << 40;

}  // namespace

LengthClass length_class(int64_t length) {
  if (length <= kMaxAlone || length > kMax) return {length, length};
  // 2^k < length <= 2^(k+1)
  const auto below = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)) / 2);
  const int64_t width = below / kParts, part = (length - below - 1) / width;
  return {below + part * width + 1, below + (part + 1) * width};
}

}  // namespace sinter
