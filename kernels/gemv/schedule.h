// The configuration of a matvec kernel: pure functions of the product and the device.
#pragma once

#include <optional>
#include <vector>

#include "device/device.h"
#include "kernels/gemv/form.h"

namespace sinter {

/// How a matvec kernel streams its matrix; kernels/gemv/matvec_stream.cuh says what the fields
/// mean.
struct MatvecConfig {
  int64_t warps = 16;
  int64_t piece = 1024;                     // elements
  int64_t stages = 4;                       // the most pieces of a warp in flight
  int64_t shared_bytes = 0;                 // the most of a block
  int64_t ring_bytes = 0, token_bytes = 0;  // what it wants: those, and these for each token
  int64_t operand_bytes = 0;  // the most of the operand that may stand in shared memory
  int64_t blocks = 1;
};
/// Bytes of shared memory that a matvec's operand may take: what is left keeps enough of the matrix
/// in flight.
int64_t matvec_operand_limit(const DeviceDescription& device);
/// The product with rows r, r + rows / units, ... in one block. nullopt: the sums of its tokens do
/// not fit the device's shared memory, or `ring` (null: the schedule's own choice) does not fit
/// them, the row or the device.
std::optional<MatvecConfig> schedule_matvec(const MatvecProduct& product, int64_t units,
                                            const DeviceDescription& device,
                                            const MatvecRing* ring = nullptr);

/// Forms of a product's ring worth measuring, the schedule's own first; all fit the product without
/// neighbours. Empty: the device has no rings, or the product does not fit it.
std::vector<MatvecRing> matvec_ring_candidates(const MatvecProduct& product,
                                               const DeviceDescription& device);

}  // namespace sinter
