// Heads of attention, and which rows of its caches a token sees; the same text on host and device.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// Elements of a head of queries and keys, and of values, that kernels take.
constexpr int kMaxHeadWidth = 256;
SINTER_DEVICE constexpr bool is_head_width(long long width) {
  return width >= 1 && width <= kMaxHeadWidth;
}

/// The keys of one token: low .. low + count - 1, count >= 0. Of an attention with a sink of S
/// keys, a token whose range begins behind row 0 sees the rows 0 .. S - 1 too, which end before
/// `low` (with_sink).
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

/// The keys of a range that ends at row `last` or before, and the sink: rows 0 .. sink - 1 up to
/// `last`. If the two touch, or one is empty, they are one range from row 0 on.
SINTER_DEVICE AttentionRange with_sink(AttentionRange range, long long last, long long sink) {
  const long long leading = last + 1 < sink ? last + 1 : sink;
  if (leading <= 0) return {0, 0};
  if (range.count == 0) return {0, leading};
  if (range.low <= leading) return {0, range.low + range.count};
  return range;
}

/// The constant kSink of a kernel: the leading keys that a token sees beside its range. 0 where the
/// kernel has none.
template <typename Config, typename = void>
constexpr int kSinkOf = 0;
template <typename Config>
constexpr int kSinkOf<Config, decltype(static_cast<void>(Config::kSink))> = Config::kSink;

/// The keys of a token with that first and last row, which are rows of the cache or none.
template <typename Config>
SINTER_DEVICE AttentionRange visible_keys(int first, int last) {
  const AttentionRange range = attention_range(first, last, Config::kWindow);
  return kSinkOf<Config> == 0 ? range : with_sink(range, last, kSinkOf<Config>);
}
/// The same keys, as far as they are rows of a cache of `rows` rows.
template <typename Config>
SINTER_DEVICE AttentionRange visible_keys(int first, int last, long long rows) {
  const AttentionRange range = rows_of_cache(attention_range(first, last, Config::kWindow), rows);
  if (kSinkOf<Config> == 0) return range;
  return with_sink(range, last < rows ? last : rows - 1, kSinkOf<Config>);
}

/// The row is one of the sink of a kernel's token whose keys begin at `low`.
template <typename Config>
SINTER_DEVICE bool is_of_sink(int row, int low) {
  return kSinkOf<Config> != 0 && low > 0 && row < kSinkOf<Config>;
}

/// The first key of a tile of `keys` keys, from `begin` on, that a token may see whose keys begin
/// at `low`: tiles between the sink and the range are left out.
template <typename Config>
SINTER_DEVICE int after_gap(int begin, int low, int keys) {
  if constexpr (kSinkOf<Config> != 0) {
    const int tile = low / keys * keys;
    if (begin >= kSinkOf<Config> && begin < tile) return tile;
  }
  return begin;
}

}  // namespace sinter
