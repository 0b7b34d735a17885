// The configuration of a tiled_attention kernel.
#pragma once

#include <optional>

#include "device/device.h"
#include "ir/attention_heads.h"

namespace sinter {

/// The sizes of an attention that decide about its kernel.
struct AttentionShape {
  int64_t width = 0, value_width = 0;  // of heads
  int64_t group = 1;                   // query heads of a key head
  int64_t segment = 0;                 // keys of a segment; 0: they are not cut
  int64_t splits = 0;                  // of few tokens; 0: the kernel of many
};
AttentionShape attention_shape(const Graph& graph, const Op& op);

struct AttentionForm {
  bool warpgroups = false;   // products of warpgroups
  int64_t rows = 0;          // tokens of a block
  int64_t threads = 0;       // of a block
  int64_t query_stages = 1;  // tiles of queries
  int64_t stages = 1;        // tiles of keys, and of values
  int64_t joined_words = 0;  // of a thread's joined sums, four each, in shared memory
  int64_t shared_bytes = 0;  // of the block's tiles and joined sums
  bool bulk_copies = false;  // of whole tiles of keys and values, where tensor maps describe them
};

/// nullopt: the device has too little shared memory, or no tensor cores.
std::optional<AttentionForm> attention_form(const AttentionShape& shape,
                                            const DeviceDescription& device);

}  // namespace sinter
