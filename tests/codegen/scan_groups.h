// Groups of one cumulative_sum each, for all tests of its kernels.
#pragma once

#include <string>
#include <vector>

#include "codegen/groups.h"

namespace sinter {

/// The element types that are summed.
inline constexpr DType kSummed[] = {DType::f32, DType::f16, DType::bf16, DType::i32};

/// A group with its own text.
struct ScanGroup {
  std::string name, text;
  GroupText view() const { return {name.c_str(), 0, text.c_str()}; }
};

/// The sum of a value of these dims, such as "N, 9", along `axis`. Bit 0 of `form`: reverse, bit 1:
/// exclusive.
ScanGroup scan_group(const std::string& dims, int64_t axis, int form);

/// Sums that are read through views.
extern const std::vector<GroupText> kScanViews;

}  // namespace sinter
