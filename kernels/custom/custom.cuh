// What the text of a caller's op is called with (ir/custom_op.h). An emitted kernel defines
//
//   struct SinterCustom : CustomBlock {
//     long long dims(int operand, int axis);   an extent of an operand
//     long long result_dims(int axis);         an extent of the result
//     double number(int i);                    an element of the attribute `numbers`
//   };
//
// and an accessor for each open operand, and for the result.
#pragma once

#include "kernels/common/vector.cuh"

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

// The element that is being set, in the place of the result's memory: whatever the address, it is
// this one.
template <typename V>
struct CustomElement {
  V value;

  SINTER_DEVICE CustomElement operator+(long long) const { return *this; }
};
template <typename V>
SINTER_DEVICE V load(CustomElement<V> element) {
  return element.value;
}

// The 8 elements that are being set, from the result's element `first` on, in the same place.
template <typename V>
struct CustomChunk;
template <typename V>
struct CustomChunkAt {
  const CustomChunk<V>& chunk;
  long long at;
};
template <typename V>
struct CustomChunk {
  V values[8];
  long long first;

  SINTER_DEVICE CustomChunkAt<V> operator+(long long at) const { return {*this, at}; }
};
template <typename V>
SINTER_DEVICE V load(CustomChunkAt<V> element) {
  return element.chunk.values[element.at - element.chunk.first];
}
// From the first element on, which the chunk's place is.
template <typename V>
SINTER_DEVICE void load_chunk(V (&out)[8], CustomChunkAt<V> elements) {
#pragma unroll
  for (int e = 0; e < 8; ++e) out[e] = elements.chunk.values[e];
}

}  // namespace sinter
