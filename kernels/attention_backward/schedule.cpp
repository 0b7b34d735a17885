#include "kernels/attention_backward/schedule.h"

#include "kernels/tile/config.h"
#include "kernels/tile/layout.h"

namespace sinter {
namespace {

// Beside its tiles, a block declares flags of tiles, what it knows of tokens, and barriers.
constexpr int64_t kDeclaredGradientBytes = 8192;

}  // namespace

std::optional<GradientForm> gradient_form(int64_t width, int64_t value_width,
                                          const DeviceDescription& device) {
  if (!device.has.mma || !device.has.async_copy) return std::nullopt;
  const int padded =
      tile_padded(static_cast<int>(width)) + tile_padded(static_cast<int>(value_width));
  GradientForm form =
      device.has.wgmma
          ? GradientForm{.warpgroups = true, .own_rows = 128, .other_rows = 64, .threads = 384}
          : GradientForm{.own_rows = 64, .other_rows = 32, .threads = 128};
  const int64_t own = tile_bytes(static_cast<int>(form.own_rows), padded);
  const int64_t stage = tile_bytes(static_cast<int>(form.other_rows), padded);
  const auto stages = stages_that_fit(device.max_shared_bytes - kDeclaredGradientBytes - own, stage,
                                      2, form.warpgroups ? 4 : 2);
  if (!stages) return std::nullopt;
  form.stages = *stages;
  form.shared_bytes = own + *stages * stage;
  return form;
}

}  // namespace sinter
