// Ops without a gradient.
#include "ir/gradient.h"

namespace sinter {

#define SINTER_NO_GRADIENT(name) \
  Result<ValueId> gradient_##name(OpGradient& d, size_t) { return d.has_none(); }

// Writes of a state; parts of values and sums of runs, which passes make of other ops.
SINTER_NO_GRADIENT(kv_append)
SINTER_NO_GRADIENT(store)
SINTER_NO_GRADIENT(place)
SINTER_NO_GRADIENT(run_sums)
// Parts of attention's gradient.
SINTER_NO_GRADIENT(attention_log_sum)
SINTER_NO_GRADIENT(attention_query_gradient)
SINTER_NO_GRADIENT(attention_key_gradient)
SINTER_NO_GRADIENT(attention_value_gradient)
SINTER_NO_GRADIENT(expert_linear)
SINTER_NO_GRADIENT(custom)
// The gradient depends on what the other ranks do with the sum.
SINTER_NO_GRADIENT(all_reduce)
// Never asked: their operands or results are integers or truth values.
SINTER_NO_GRADIENT(mask_tiles)
SINTER_NO_GRADIENT(sample)
SINTER_NO_GRADIENT(pack_codes)
SINTER_NO_GRADIENT(dequantize)
SINTER_NO_GRADIENT(top_k)
SINTER_NO_GRADIENT(sorted_positions)
SINTER_NO_GRADIENT(sorted_places)
SINTER_NO_GRADIENT(run_ends)

#undef SINTER_NO_GRADIENT

}  // namespace sinter
