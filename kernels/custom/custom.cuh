// The arguments of the kernel text of a caller's op (ir/custom_op.h). An emitted kernel defines
//
//   struct SinterCustom : CustomBlock {
//     long long dims(int operand, int axis);   an extent of an operand
//     long long result_dims(int axis);         an extent of the result
//     double number(int i);                    an element of the attribute `numbers`
//   };
//
// and an accessor for each open operand, and for the result (codegen/emission/element_ports.h).
#pragma once

#include "kernels/common/element_ports.cuh"

namespace sinter {

// The block's place.
struct CustomBlock {
  long long row, rows;    // the row that the block computes, 0 <= row < rows
  unsigned char* shared;  // dynamic shared memory, 128-byte aligned; null: none
};

// A closed operand, in memory.
template <typename T>
struct CustomOperand {
  const T* elements;

  SINTER_DEVICE auto operator()(long long at) const { return load(elements + at); }
  template <typename V>
  SINTER_DEVICE void chunk(V (&out)[8], long long at) const {
    load_chunk(out, elements + at);
  }
  SINTER_DEVICE const T* data() const { return elements; }
};

}  // namespace sinter
