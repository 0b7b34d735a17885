// Tensor maps: an argument of a kernel that describes a tensor in device memory, of which one
// instruction (cp.async.bulk.tensor) copies a box into shared memory.
#pragma once

#include <optional>
#include <vector>

#include "ir/sym_expr.h"

namespace sinter {

/// A tensor of 1 to 5 dimensions, the innermost first, in an input of a kernel. Elements of a box
/// that lie outside of the tensor become zeros in shared memory.
struct TensorMap {
  uint32_t input = 0;            // of the kernel's group
  SymExpr offset;                // of the first element, in elements of the input
  std::vector<SymExpr> dims;     // elements
  std::vector<SymExpr> strides;  // of the dimensions 1 and up, in elements; dimension 0 has 1
  std::vector<int64_t> box;      // elements, each 1 to 256
  /// Bytes of a row of shared memory whose 16-byte chunks are swizzled (kernels/tile/layout.h): 0
  /// (none), 32, 64 or 128.
  int64_t swizzle = 0;
};
inline constexpr size_t kMaxTensorMapDims = 5;
inline constexpr int64_t kMaxTensorMapBox = 256;
/// The alignment of addresses, strides and rows of boxes, in bytes.
inline constexpr int64_t kTensorMapAlignment = 16;
/// The size and alignment of the argument that a kernel gets.
inline constexpr int64_t kTensorMapBytes = 128, kTensorMapArgumentAlignment = 64;

/// The numbers of a tensor map for one set of symbol values.
struct TensorMapNumbers {
  int64_t offset = 0;
  std::vector<int64_t> dims, strides;
};
/// Nothing where a number exceeds 63 bits.
std::optional<TensorMapNumbers> numbers_of(const TensorMap& map,
                                           llvm::ArrayRef<int64_t> symbol_values);

/// Bytes of the parameters of a kernel with that many of 8 bytes, followed by tensor maps.
int64_t parameter_bytes(size_t plain, size_t tensor_maps);

}  // namespace sinter
