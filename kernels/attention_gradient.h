// A limit that importers check before they use the ops of an attention's gradient.
#pragma once

#include <cstdint>

namespace sinter {

/// The most elements of a head of queries, keys and values that the gradient's kernels take.
int64_t max_gradient_width();

}  // namespace sinter
