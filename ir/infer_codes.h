// Rules that all ops with the attribute `codes` share.
#pragma once

#include "ir/code_format.h"
#include "ir/inference.h"

namespace sinter {

/// A row of a packed matrix, as the attributes `codes` and `size` describe it.
struct PackedCodes {
  CodeFormat format;
  int64_t length;  // codes of a row

  /// `matrix` is i32 [M, words of a packed row], M a constant.
  Status check_matrix(const Inference& op, int constraint, const TensorType& matrix) const;
};

/// Refuses, by that constraint, a text that names no format, and a size that is not 1 .. 2^28.
Result<PackedCodes> infer_packed_codes(const Inference& op, int constraint);

}  // namespace sinter
