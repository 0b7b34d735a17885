// Classes of rows of a matrix whose sums one block has (ir/colocation.h). Config: kUnits rows of a
// class, kStride apart.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

// The row of a class, and the other way round: the class of a row, and which of its rows it is.
template <typename Config>
SINTER_DEVICE int row_of_class(int row_class, int unit) {
  return row_class / Config::kStride * Config::kStride * Config::kUnits + unit * Config::kStride +
         row_class % Config::kStride;
}
template <typename Config>
SINTER_DEVICE int class_of_row(int row) {
  return row / (Config::kStride * Config::kUnits) * Config::kStride + row % Config::kStride;
}
template <typename Config>
SINTER_DEVICE int unit_of_row(int row) {
  return row / Config::kStride % Config::kUnits;
}

}  // namespace sinter
