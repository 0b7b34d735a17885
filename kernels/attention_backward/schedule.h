// The form of a kernel of attention's gradient.
#pragma once

#include <cstdint>
#include <optional>

#include "device/device.h"

namespace sinter {

/// Rows whose sums a kernel stores beside a gradient: a warpgroup has as many.
inline constexpr int64_t kSummedGradientRows = 64;

struct GradientForm {
  bool warpgroups = false;
  int64_t own_rows = 0, other_rows = 0;  // of a block, and of a tile of those that it walks
  int64_t threads = 0;                   // of a block
  int64_t stages = 0;                    // tiles of other rows in shared memory
  int64_t shared_bytes = 0;              // of a block's tiles
  int64_t blocks = 1;                    // that a multiprocessor has room for at a time
  int64_t cached_bytes = 0;              // of other rows that the L2 cache keeps for blocks
  /// Registers of a thread that loads, and of one that multiplies, where a whole warpgroup loads.
  int64_t loading_registers = 0, multiplying_registers = 0;
};

/// For heads of these widths, at most kMaxGradientWidth: of the gradients of keys and values, or of
/// queries. nullopt: the device cannot run one.
std::optional<GradientForm> gradient_form(int64_t width, int64_t value_width, bool of_keys,
                                          const DeviceDescription& device);

}  // namespace sinter
