#include "kernels/float_attention/schedule.h"

#include <algorithm>

#include "kernels/float_attention/layout.h"

namespace sinter {
namespace {

FloatAttentionForm form_of_rows(int rows, int64_t width) {
  return {.rows = rows,
          .threads = rows / kWarpRows * 32,
          .shared_bytes = int64_t{4} * float_attention_floats(rows, static_cast<int>(width))};
}

}  // namespace

FloatAttentionForm float_attention_form(const AttentionHeads& heads,
                                        const DeviceDescription& device) {
  FloatAttentionForm form = form_of_rows(64, heads.width);
  if (form.shared_bytes > device.max_shared_bytes) form = form_of_rows(32, heads.width);
  // Three, with 168 registers a thread, where shared memory and the sums of a row leave room.
  if (heads.value_width <= 128)
    form.resident_blocks = std::clamp<int64_t>(device.max_shared_bytes / form.shared_bytes, 1, 3);
  return form;
}

}  // namespace sinter
