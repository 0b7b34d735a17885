// The configuration of a float_attention kernel.
#pragma once

#include "device/device.h"
#include "ir/attention_heads.h"

namespace sinter {

struct FloatAttentionForm {
  int64_t rows = 0;          // tokens of a block
  int64_t threads = 0;       // of a block
  int64_t shared_bytes = 0;  // of the block's tiles
};

/// For queries and keys of at most kMaxHeadWidth elements a head.
FloatAttentionForm float_attention_form(int64_t width, const DeviceDescription& device);

}  // namespace sinter
