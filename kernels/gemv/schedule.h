// The configuration of a gemv kernel: pure functions of the product and the device.
#pragma once

#include <optional>
#include <vector>

#include "device/device.h"
#include "kernels/gemv/form.h"

namespace sinter {

/// How a gemv kernel loads its matrix; kernels/gemv/gemv_pipeline.cuh says what the fields mean.
struct GemvConfig {
  int64_t warps = 16;
  int64_t stage_length = 1024;                  // elements
  int64_t stages = 4;                           // the largest number of a warp
  int64_t shared_bytes = 0;                     // the most of a block
  int64_t pipeline_bytes = 0, token_bytes = 0;  // what it wants: the first, and the second a token
  int64_t operand_bytes = 0;  // of shared memory, the most that the operand may take
  int64_t blocks = 1;
};
/// Bytes of shared memory that a gemv's operand may take: the rest holds enough stages.
int64_t gemv_operand_limit(const DeviceDescription& device);
/// The product with rows r, r + rows / units, ... in one block. nullopt: the sums of its tokens do
/// not fit the device's shared memory, or `form` (null: the schedule's own choice) does not fit
/// them, the row or the device.
std::optional<GemvConfig> schedule_gemv(const GemvProduct& product, int64_t units,
                                        const DeviceDescription& device,
                                        const GemvForm* form = nullptr);

/// Forms of a product worth measuring, the schedule's own first; all fit the product without
/// neighbours. Empty: the device has no bulk copies, or the product does not fit it.
std::vector<GemvForm> gemv_form_candidates(const GemvProduct& product,
                                           const DeviceDescription& device);

}  // namespace sinter
