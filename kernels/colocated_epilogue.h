// Whether an anchor's kernel can have an epilogue that needs sums of several rows of its matrix.
#pragma once

#include <variant>

#include "ir/colocation.h"
#include "kernels/group.h"

namespace sinter {

/// The rows that the epilogue of a group's anchor needs together, or why there are none. The last
/// `row_axes` axes of the anchor's result count rows.
std::variant<ColocatedRows, Verdict> colocated_epilogue(const GroupView& group,
                                                        uint32_t row_axes = 1);

}  // namespace sinter
