// The configuration of a tiled_attention kernel.
#pragma once

#include <optional>

#include "device/device.h"
#include "ir/attention_heads.h"

namespace sinter {

struct AttentionForm {
  bool warpgroups = false;   // products of warpgroups
  int64_t rows = 0;          // tokens of a block
  int64_t threads = 0;       // of a block
  int64_t query_stages = 1;  // tiles of queries
  int64_t stages = 1;        // tiles of keys, and of values
  int64_t shared_bytes = 0;  // of the block's tiles
  bool bulk_copies = false;  // of whole tiles of keys and values, where tensor maps describe them
};

/// Heads of these widths. nullopt: the device has too little shared memory, or no tensor cores.
std::optional<AttentionForm> attention_form(int64_t width, int64_t value_width,
                                            const DeviceDescription& device);

}  // namespace sinter
