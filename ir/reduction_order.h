// The order in which a row's elements are combined. Part of the numerics contract: host, kernels
// and prologues follow it, whatever the number of threads.
//
// A row of n elements is cut into chunks of 8. Chunk c belongs to virtual lane c mod V. A lane
// starts at the identity (sum: +0, max: -inf; of i32: 0, the least number) and takes its chunks,
// and a chunk's elements, in ascending order. Then lanes combine by a butterfly: for stride = 1, 2,
// 4 .. V/2 lane l becomes combine(l, l xor stride). combine is commutative, so that all lanes end
// equal.
#pragma once

#include <bit>
#include <cstdint>

#include "ir/types.h"

namespace sinter {

inline constexpr int64_t kChunk = 8;  // elements
inline constexpr int64_t kMaxLanes = 1024;
inline constexpr int64_t kSymbolicLanes = 256;  // rows whose length is a symbol

/// V for a row of `n` elements known when compiling.
inline int64_t virtual_lanes(int64_t n) {
  const uint64_t chunks = static_cast<uint64_t>((n + kChunk - 1) / kChunk);
  const uint64_t lanes = std::bit_ceil(chunks == 0 ? uint64_t{1} : chunks);
  return static_cast<int64_t>(lanes < kMaxLanes ? lanes : kMaxLanes);
}

/// V for a reduction over `axes` of a value of these dims.
inline int64_t virtual_lanes(DimsRef dims, llvm::ArrayRef<int64_t> axes) {
  int64_t n = 1;
  for (int64_t axis : axes) {
    if (!dims[axis].is_constant()) return kSymbolicLanes;
    n *= dims[axis].constant();
  }
  return virtual_lanes(n);
}

}  // namespace sinter
