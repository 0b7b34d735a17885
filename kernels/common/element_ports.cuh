// Replacements for the pointer to a result, from which an epilogue reads the result that is given
// to it element by element, or in chunks of 8 (codegen/emission/element_ports.h).
#pragma once

#include "kernels/common/vector.cuh"

namespace sinter {

// The element that is being set, which replaces the result's memory: every address gives this
// element.
template <typename V>
struct PortElement {
  V value;

  SINTER_DEVICE PortElement operator+(long long) const { return *this; }
};
template <typename V>
SINTER_DEVICE V load(PortElement<V> element) {
  return element.value;
}

// The 8 elements that are being set, from the result's element `first` on, in the same place.
template <typename V>
struct PortChunk;
template <typename V>
struct PortChunkAt {
  const PortChunk<V>& chunk;
  long long at;
};
template <typename V>
struct PortChunk {
  V values[8];
  long long first;

  SINTER_DEVICE PortChunkAt<V> operator+(long long at) const { return {*this, at}; }
};
template <typename V>
SINTER_DEVICE V load(PortChunkAt<V> element) {
  return element.chunk.values[element.at - element.chunk.first];
}
// From the first element on, which the chunk's place is.
template <typename V>
SINTER_DEVICE void load_chunk(V (&out)[8], PortChunkAt<V> elements) {
#pragma unroll
  for (int e = 0; e < 8; ++e) out[e] = elements.chunk.values[e];
}

}  // namespace sinter
