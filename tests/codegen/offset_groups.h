// Groups whose operands begin one element after the beginning of a tensor, so that no vector of a
// row lies where a vector may. Of closed ops these are the matrices: the rest must stand in memory
// as it is (passes/fusion/materialize.cpp).
#pragma once

#include <string>
#include <vector>

#include "codegen/groups.h"

namespace sinter {

/// Rows that such groups are tried with.
inline constexpr int64_t kOffsetWidths[] = {1, 3, 7, 127, 129, 4095};

/// A group with its own text.
struct OffsetGroup {
  std::string name, text;
  GroupText view() const { return {name.c_str(), prefix_rank, text.c_str()}; }
  uint32_t prefix_rank = 0;
};

/// Pointwise and over rows of `width` elements; DTYPE stands for an element type.
std::vector<OffsetGroup> offset_groups(int64_t width);
/// Closed ops on rows of `width` elements.
std::vector<OffsetGroup> offset_closed_groups(int64_t width);

}  // namespace sinter
