// Heads of attention, and which rows of its caches a token sees; the same text on host and device.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// Elements of a head of queries and keys, and of values, that kernels take.
constexpr int kMaxHeadWidth = 256;
SINTER_DEVICE constexpr bool is_head_width(long long width) {
  return width >= 1 && width <= kMaxHeadWidth;
}

/// The keys of one token: low .. low + count - 1, count >= 0.
struct AttentionRange {
  long long low, count;
};
/// `window`: the most keys, 0: no bound.
SINTER_DEVICE AttentionRange attention_range(int first, int last, long long window) {
  long long low = first;
  if (window > 0 && last - low >= window) low = last - window + 1;
  const long long count = last - low + 1;
  return {low, count > 0 ? count : 0};
}
/// The keys of the range that are rows of a cache of `rows` rows.
SINTER_DEVICE AttentionRange rows_of_cache(AttentionRange keys, long long rows) {
  const long long low = keys.low > 0 ? keys.low : 0, end = keys.low + keys.count;
  const long long count = (end < rows ? end : rows) - low;
  return count > 0 ? AttentionRange{low, count} : AttentionRange{0, 0};
}

}  // namespace sinter
