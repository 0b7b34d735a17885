// One row's reduction in the contract's order.
#pragma once

#include <cstdint>

namespace sinter {

/// The sum (maximum) of `count` elements by `lanes` virtual lanes; see ir/reduction_order.h.
float reduce_sum(const float* row, int64_t count, int64_t lanes);
double reduce_sum(const double* row, int64_t count, int64_t lanes);
float reduce_max(const float* row, int64_t count, int64_t lanes);
double reduce_max(const double* row, int64_t count, int64_t lanes);

}  // namespace sinter
