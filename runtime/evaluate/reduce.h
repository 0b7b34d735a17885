// One row's reduction in the contract's order.
#pragma once

#include <cstdint>

namespace sinter {

/// The sum (maximum) of `count` elements by `lanes` virtual lanes; see ir/reduction_order.h.
float reduce_sum(const float* row, int64_t count, int64_t lanes);
double reduce_sum(const double* row, int64_t count, int64_t lanes);
/// The sums of `runs` runs of virtual lanes that the rest of the tree joins to reduce_sum
/// (ir/column_runs.h): `sums` has room for `lanes` numbers, of which the first `runs` are
/// the result.
void sum_runs(const float* row, int64_t count, int64_t lanes, int64_t runs, float* sums);
void sum_runs(const double* row, int64_t count, int64_t lanes, int64_t runs, double* sums);
float reduce_max(const float* row, int64_t count, int64_t lanes);
double reduce_max(const double* row, int64_t count, int64_t lanes);

}  // namespace sinter
