// The configuration of a gemv kernel: pure functions of the product and the device.
#pragma once

#include <optional>
#include <vector>

#include "device/device.h"
#include "kernels/gemv/form.h"

namespace sinter {

/// How a gemv kernel streams its matrix; kernels/gemv/gemv_pipeline.cuh says what the fields
/// mean.
struct GemvConfig {
  int64_t warps = 16;
  int64_t piece = 1024;                     // elements
  int64_t stages = 4;                       // the most pieces of a warp in flight
  int64_t shared_bytes = 0;                 // the most of a block
  int64_t pipeline_bytes = 0, token_bytes = 0;  // what it wants: those, and these for each token
  int64_t operand_bytes = 0;  // the most of the operand that may stand in shared memory
  int64_t blocks = 1;
};
/// Bytes of shared memory that a gemv's operand may take: what is left keeps enough of the matrix
/// in flight.
int64_t gemv_operand_limit(const DeviceDescription& device);
/// The product with rows r, r + rows / units, ... in one block. nullopt: the sums of its tokens do
/// not fit the device's shared memory, or `ring` (null: the schedule's own choice) does not fit
/// them, the row or the device.
std::optional<GemvConfig> schedule_gemv(const GemvProduct& product, int64_t units,
                                            const DeviceDescription& device,
                                            const GemvForm* ring = nullptr);

/// Forms of a product's ring worth measuring, the schedule's own first; all fit the product without
/// neighbours. Empty: the device has no rings, or the product does not fit it.
std::vector<GemvForm> gemv_form_candidates(const GemvProduct& product,
                                               const DeviceDescription& device);

}  // namespace sinter
