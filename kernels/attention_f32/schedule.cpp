#include "kernels/attention_f32/schedule.h"

#include "kernels/attention_f32/layout.h"

namespace sinter {
namespace {

FloatAttentionForm form_of_rows(int rows, int64_t width) {
  return {.rows = rows,
          .threads = rows / kWarpRows * 32,
          .shared_bytes = int64_t{4} * float_attention_floats(rows, static_cast<int>(width))};
}

}  // namespace

FloatAttentionForm float_attention_form(int64_t width, const DeviceDescription& device) {
  const FloatAttentionForm form = form_of_rows(64, width);
  return form.shared_bytes <= device.max_shared_bytes ? form : form_of_rows(32, width);
}

}  // namespace sinter
