#include "kernels/tiled_attention/schedule.h"

#include <algorithm>

#include "ir/optional_attribute.h"
#include "kernels/tile/layout.h"
#include "kernels/tile/search.h"
#include "kernels/tiled_attention/layout.h"
#include "kernels/tiled_attention/order.h"

namespace sinter {
namespace {

// Beside the tiles, which are asked for at the launch, a block of warpgroups declares what its rows
// see, the order of its work tiles and barriers.
constexpr int64_t kBytesBesideTiles = 6144;
// The first row of each row's sequence, of two work tiles, with segments.
constexpr int64_t kBytesOfFirstRows = 2 * 4 * 128;

struct TileSizes {
  int64_t queries, keys, values;  // bytes of a tile
};
TileSizes tile_sizes(int64_t width, int64_t value_width, int64_t rows) {
  const int keys = attention_key_tile(static_cast<int>(width), static_cast<int>(value_width));
  const int padded = tile_padded(static_cast<int>(width));
  return {.queries = tile_bytes(static_cast<int>(rows), padded),
          .keys = tile_bytes(keys, padded),
          .values = tile_bytes(keys, tile_padded(static_cast<int>(value_width)))};
}

// Stages of keys, and of values. With fewer, the products would wait for a tile that one warp loads
// without a bulk copy.
constexpr int64_t kMaxStages = 4;

/// Bytes of a block that the system keeps.
constexpr int64_t kSystemBytes = 1024;
/// A word is four joined sums of a thread. With segments most of them are in shared memory: beside
/// the sums of a segment registers have room for this number. (All 8 words of heads of 64 elements
/// in registers: one H200, 2,048 tokens of 32 heads 68 us, in shared memory 64.)
constexpr int64_t kWordsInRegisters = 4;

/// The form with as many stages as `bytes` of shared memory hold.
std::optional<AttentionForm> with_stages(AttentionForm form, const TileSizes& sizes, int64_t bytes,
                                         int64_t least, int64_t most) {
  const int64_t words = 16 * 2 * form.rows;  // bytes of a word of each thread that has sums
  const int64_t beside = form.query_stages * sizes.queries + form.joined_words * words;
  const int64_t stage = sizes.keys + sizes.values;
  const auto stages = stages_that_fit(bytes - beside, stage, least, most);
  if (!stages) return std::nullopt;
  form.stages = *stages;
  form.shared_bytes = beside + *stages * stage;
  return form;
}

std::optional<AttentionForm> warpgroup_form(const AttentionShape& shape, int64_t joined_words,
                                            const DeviceDescription& device) {
  AttentionForm form{.warpgroups = true,
                     .rows = 128,
                     .threads = 512,
                     .query_stages = 2,
                     .joined_words = joined_words};
  const TileSizes sizes = tile_sizes(shape.width, shape.value_width, form.rows);
  const int64_t beside = kBytesBesideTiles + (shape.segment > 0 ? kBytesOfFirstRows : 0);
  const int64_t bytes = device.max_shared_bytes - beside;
  auto found = with_stages(form, sizes, bytes, 2, kMaxStages);
  if (!found) {
    form.query_stages = 1;
    found = with_stages(form, sizes, bytes, 2, kMaxStages);
  }
  for (int64_t kept = 1; !found && kept <= std::min(kWordsInRegisters, joined_words); ++kept) {
    form.joined_words = joined_words - kept;
    found = with_stages(form, sizes, bytes, 2, kMaxStages);
  }
  if (found) found->bulk_copies = found->stages == kMaxStages;
  return found;
}

std::optional<AttentionForm> few_form(const AttentionShape& shape,
                                      const DeviceDescription& device) {
  const int width = tile_padded(static_cast<int>(shape.width)),
            value_width = static_cast<int>(shape.value_width),
            keys = attention_key_tile(static_cast<int>(shape.width), value_width),
            heads = static_cast<int>(few_heads(shape.group)),
            splits = device.has.clusters ? static_cast<int>(shape.splits) : 1;
  AttentionForm form{.rows = kHeadRows, .threads = kFewThreads};
  const int handed = std::max(few_handed_bytes(keys, heads, value_width, 1),
                              few_handed_bytes(keys, heads, value_width, splits));
  const auto bytes = [&](int slots) {
    return few_tile_bytes(keys, width, tile_padded(value_width), slots) + handed;
  };
  // Two blocks share a multiprocessor, if they can.
  const int64_t wanted = device.max_shared_bytes / 2 - kSystemBytes;
  form.stages = kMinFewSlots;
  while (form.stages < kMaxFewSlots && bytes(static_cast<int>(form.stages) + 1) <= wanted)
    ++form.stages;
  form.shared_bytes = bytes(static_cast<int>(form.stages));
  if (form.shared_bytes > device.max_shared_bytes) return std::nullopt;
  return form;
}

}  // namespace

AttentionShape attention_shape(const Graph& graph, const Op& op) {
  const AttentionHeads heads = attention_heads(graph, op);
  return {heads.width, heads.value_width, heads.group(), integer_or(op.attrs, AttrName::segment, 0),
          integer_or(op.attrs, AttrName::splits, 0)};
}

std::optional<AttentionForm> attention_form(const AttentionShape& shape,
                                            const DeviceDescription& device) {
  if (!device.has.mma || !device.has.async_copy) return std::nullopt;
  if (shape.splits > 0) return few_form(shape, device);
  const int64_t joined_words =
      shape.segment > 0 ? tile_padded(static_cast<int>(shape.value_width)) / 8 : 0;
  if (device.has.wgmma)
    if (const auto form = warpgroup_form(shape, joined_words, device)) return form;
  const AttentionForm form{.rows = 64, .threads = 128, .joined_words = joined_words};
  return with_stages(form, tile_sizes(shape.width, shape.value_width, form.rows),
                     device.max_shared_bytes, 1, 1);
}

}  // namespace sinter
