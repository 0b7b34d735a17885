// The operands of a product with a packed matrix, as host evaluation reads them.
#pragma once

#include <vector>

#include "runtime/evaluate/ops.h"
#include "runtime/evaluate/packed_row.h"

namespace sinter {

/// x [..., length], a packed matrix of `rows` rows, and perhaps a bias [rows]; T is float or
/// double.
template <typename T>
class PackedProduct {
  std::vector<T> x_scratch_, bias_scratch_;
  std::vector<int32_t> matrix_scratch_;
  const int64_t words_;  // of a packed row
  const int32_t* const matrix_;

 public:
  const CodeFormat format;
  const int64_t length, tokens, rows;
  const T* const x;
  const T* const bias;  // null: there is none

  explicit PackedProduct(const OpCall& call)
      : words_(call.operands[1].dims[1]),
        matrix_(dense_elements(call.operands[1], matrix_scratch_)),
        format(code_format(call.op.attrs)),
        length(call.operands[0].dims.back()),
        tokens(call.operands[0].volume() / length),
        rows(call.operands[1].dims[0]),
        x(dense_elements(call.operands[0], x_scratch_)),
        bias(call.operands.size() == 3 ? dense_elements(call.operands[2], bias_scratch_)
                                       : nullptr) {}
  PackedProduct(const PackedProduct&) = delete;
  PackedProduct& operator=(const PackedProduct&) = delete;

  /// Reads row `m` of the matrix.
  void read(UnpackedRow<T>& row, int64_t m) const {
    row.read(format, length, reinterpret_cast<const std::byte*>(matrix_ + m * words_));
  }
  /// `sum` and the bias of row `m`, if there is one.
  T with_bias(T sum, int64_t m) const { return bias != nullptr ? sum + bias[m] : sum; }
};

}  // namespace sinter
