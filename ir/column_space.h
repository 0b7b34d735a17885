// The space of a column reduction: a reduction over a run of axes that kept axes follow. The
// elements of one result stand a stride apart in memory, and neighbours belong to neighbouring
// results.
#pragma once

#include <optional>

#include "ir/sym_expr.h"

namespace sinter {

/// dims = [outer..., reduced..., inner...]: a result for each element of outer and inner, whose
/// reduced elements are counted row-major.
struct ColumnSpace {
  Dims dims;            // of the operand
  uint32_t first, end;  // the reduced axes: [first, end)

  DimsRef outer() const { return DimsRef(dims).take_front(first); }
  DimsRef reduced() const { return DimsRef(dims).slice(first, end - first); }
  DimsRef inner() const { return DimsRef(dims).drop_front(end); }
  /// Dims of a result: the operand's dims with 1 for each reduced axis.
  Dims kept() const {
    Dims result = dims;
    for (uint32_t axis = first; axis < end; ++axis) result[axis] = Dim(1);
    return result;
  }
  friend bool operator==(const ColumnSpace&, const ColumnSpace&) = default;
};

/// True if the dims differ by axes of one element at most: elements are the same in the same order.
inline bool same_elements(DimsRef a, DimsRef b) {
  const auto longer = [](DimsRef dims) {
    Dims result;
    for (Dim dim : dims)
      if (!dim.is(1)) result.push_back(dim);
    return result;
  };
  return longer(a) == longer(b);
}

/// The space of a reduction over `axes` (ascending) of a value of these dims. nullopt: the axes are
/// no run, nothing is reduced, or elements of one result are neighbours in memory.
inline std::optional<ColumnSpace> column_space(DimsRef dims, llvm::ArrayRef<int64_t> axes) {
  if (axes.empty() || axes.back() - axes.front() + 1 != static_cast<int64_t>(axes.size()))
    return std::nullopt;
  ColumnSpace space{Dims(dims), static_cast<uint32_t>(axes.front()),
                    static_cast<uint32_t>(axes.back()) + 1};
  if (volume(space.inner()).is(1) || volume(space.reduced()).is(1)) return std::nullopt;
  return space;
}

}  // namespace sinter
