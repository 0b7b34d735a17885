// Extents, elements and bytes of types at given values of the symbols, for costs.
#pragma once

#include "ir/types.h"

namespace sinter {

class TypeSizes {
 public:
  explicit TypeSizes(llvm::ArrayRef<int64_t> symbol_values) : values_(symbol_values) {}

  double extent(Dim dim) const {
    return static_cast<double>(dim.is_constant() ? dim.constant() : values_[dim.symbol().index]);
  }
  double elements(const TensorType& type) const {
    double product = 1;
    for (Dim dim : type.dims) product *= extent(dim);
    return product;
  }
  double bytes(const TensorType& type) const { return average_bytes(type.dtype) * elements(type); }

 private:
  llvm::ArrayRef<int64_t> values_;
};

}  // namespace sinter
