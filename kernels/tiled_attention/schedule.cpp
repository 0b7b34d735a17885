#include "kernels/tiled_attention/schedule.h"

#include "kernels/tile/layout.h"
#include "kernels/tile/search.h"
#include "kernels/tiled_attention/order.h"

namespace sinter {
namespace {

// Beside the tiles, which are asked for at the launch, a block of warpgroups declares what its rows
// see, the order of its work tiles and barriers.
constexpr int64_t kBytesBesideTiles = 6144;

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

/// The form with as many stages as the device's shared memory holds.
std::optional<AttentionForm> with_stages(AttentionForm form, const TileSizes& sizes, int64_t bytes,
                                         int64_t least, int64_t most) {
  const int64_t queries = form.query_stages * sizes.queries, stage = sizes.keys + sizes.values;
  const auto stages = stages_that_fit(bytes - queries, stage, least, most);
  if (!stages) return std::nullopt;
  form.stages = *stages;
  form.shared_bytes = queries + *stages * stage;
  return form;
}

}  // namespace

std::optional<AttentionForm> attention_form(int64_t width, int64_t value_width,
                                            const DeviceDescription& device) {
  if (!device.has.mma || !device.has.async_copy) return std::nullopt;
  if (!device.has.wgmma) {
    const AttentionForm form{.rows = 64, .threads = 128};
    return with_stages(form, tile_sizes(width, value_width, form.rows), device.max_shared_bytes, 1,
                       1);
  }
  AttentionForm form{.warpgroups = true, .rows = 128, .threads = 512, .query_stages = 2};
  const TileSizes sizes = tile_sizes(width, value_width, form.rows);
  const int64_t bytes = device.max_shared_bytes - kBytesBesideTiles;
  auto found = with_stages(form, sizes, bytes, 2, kMaxStages);
  if (!found) {
    form.query_stages = 1;
    found = with_stages(form, sizes, bytes, 2, kMaxStages);
  }
  if (found) found->bulk_copies = found->stages == kMaxStages;
  return found;
}

}  // namespace sinter
