// An epilogue by sections of the matrix's rows reads PortRows instead of the product's memory.
#pragma once

#include "kernels/common/vector.cuh"

namespace sinter {

// 8 neighbouring elements of the product, from element `first` on; `paired`: also the 8 partner
// elements, which may be at any other address.
template <bool paired>
struct PortRows {
  float own[8], partner[8];
  long long first;

  SINTER_DEVICE PortRows(long long first, const float (&values)[8]) : first(first) {
#pragma unroll
    for (int e = 0; e < 8; ++e) own[e] = values[e];
  }
  SINTER_DEVICE PortRows(long long first, const float (&values)[8], const float (&partners)[8])
      : PortRows(first, values) {
#pragma unroll
    for (int e = 0; e < 8; ++e) partner[e] = partners[e];
  }
  // Lanes 2 j and 2 j + 1 of a warp are partners. All of its lanes call it.
  SINTER_DEVICE void take_partner() {
    if constexpr (paired) {
#pragma unroll
      for (int e = 0; e < 8; ++e) partner[e] = __shfl_xor_sync(0xffffffffu, own[e], 1);
    }
  }

  struct At {
    const PortRows& rows;
    long long at;
    SINTER_DEVICE At operator+(long long n) const { return {rows, at + n}; }
    SINTER_DEVICE At operator-(long long n) const { return {rows, at - n}; }
    SINTER_DEVICE void read(float (&out)[8]) const {
      const bool is_own = !paired || at == rows.first;
#pragma unroll
      for (int e = 0; e < 8; ++e) out[e] = is_own ? rows.own[e] : rows.partner[e];
    }
  };
  SINTER_DEVICE At operator+(long long at) const { return {*this, at}; }
};

// The 8 elements that begin at an address of PortRows.
template <typename At>
SINTER_DEVICE auto load_chunk(float (&out)[8], At from) -> decltype(from.read(out)) {
  from.read(out);
}

}  // namespace sinter
