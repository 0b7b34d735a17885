#include "kernels/attention/schedule.h"

#include "kernels/attention/layout.h"
#include "kernels/attention/order.h"

namespace sinter {
namespace {

// Beside the tiles, which are asked for at the launch, a block of warpgroups declares what its rows
// see, the order of its items and barriers.
constexpr int64_t kDeclaredBytes = 6144;
constexpr int64_t kMostStages = 4;

int64_t bytes_of_tiles(int64_t width, int64_t value_width, const AttentionForm& form) {
  const int keys = attention_key_tile(static_cast<int>(width), static_cast<int>(value_width));
  const int padded = attention_padded(static_cast<int>(width));
  const int value_padded = attention_padded(static_cast<int>(value_width));
  return form.query_stages * attention_tile_bytes(static_cast<int>(form.rows), padded) +
         form.stages *
             (attention_tile_bytes(keys, padded) + attention_tile_bytes(keys, value_padded));
}

}  // namespace

HeadWidths head_widths(const Graph& graph, const Op& op) {
  const int64_t heads = op.attrs.get<int64_t>(AttrName::heads);
  return {graph[op.operands[0]].type.dims[1].constant() / heads,
          op.type.dims[1].constant() / heads};
}

std::optional<AttentionForm> attention_form(int64_t width, int64_t value_width,
                                            const DeviceDescription& device) {
  if (!device.has.mma || !device.has.async_copy) return std::nullopt;
  AttentionForm form{.rows = 64, .threads = 128};
  const auto fits = [&](AttentionForm other) {
    return bytes_of_tiles(width, value_width, other) + (other.warpgroups ? kDeclaredBytes : 0) <=
           device.max_shared_bytes;
  };
  if (device.has.wgmma) {
    form = {.warpgroups = true, .rows = 128, .threads = 512, .stages = 2};
    if (form.query_stages = 2; !fits(form)) form.query_stages = 1;
    while (form.stages < kMostStages) {
      AttentionForm more = form;
      if (++more.stages; !fits(more)) break;
      form = more;
    }
  }
  if (!fits(form)) return std::nullopt;
  form.shared_bytes = bytes_of_tiles(width, value_width, form);
  return form;
}

}  // namespace sinter
