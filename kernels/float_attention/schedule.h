// The configuration of a float_attention kernel.
#pragma once

#include "device/device.h"
#include "ir/attention_heads.h"

namespace sinter {

struct FloatAttentionForm {
  int64_t rows = 0;             // tokens of a block
  int64_t threads = 0;          // of a block
  int64_t shared_bytes = 0;     // of the block's tiles
  int64_t resident_blocks = 1;  // that a multiprocessor must have registers for at a time
};

/// For heads of at most kMaxHeadWidth elements.
FloatAttentionForm float_attention_form(const AttentionHeads& heads,
                                        const DeviceDescription& device);

}  // namespace sinter
