// Shared by the forms of `cumulative_sum`: chunks of a row as they lie in memory, and the sums of a
// group's chunks by the lanes of a warp. order.h states the order of additions.
//
// Places after the end of a row are read as some element of it: nothing before them depends on
// what they hold, so that no load needs a test.
#pragma once

#include "kernels/common/vector.cuh"
#include "kernels/scan/order.h"

namespace sinter {

// Four bytes an element.
template <typename T>
struct WideChunk {
  T x[8];
  SINTER_DEVICE T operator[](int e) const { return x[e]; }
};
template <typename T>
SINTER_DEVICE void load_chunk(WideChunk<T>& out, const T* p) {
  load_chunk(out.x, p);
}

// The type that elements are added in, and a chunk of them in as many registers as in memory.
template <typename T>
struct ScanTypes {
  using Sum = float;
  using Chunk = Packed<T>;
};
template <>
struct ScanTypes<float> {
  using Sum = float;
  using Chunk = WideChunk<float>;
};
template <>
struct ScanTypes<int> {
  using Sum = int;
  using Chunk = WideChunk<int>;
};

template <typename T>
SINTER_DEVICE void set_element(WideChunk<T>& chunk, int e, const T* p) {
  chunk.x[e] = *p;
}
template <typename T>
SINTER_DEVICE void set_element(Packed<T>& chunk, int e, const T* p) {
  const unsigned bits = p->bits;
  chunk.word[e / 2] = e % 2 == 0 ? bits : chunk.word[e / 2] | bits << 16;
}

// A row of neighbouring elements, cut into chunks in the order of the sum. `aligned`: n is a
// multiple of 8, and all rows begin at 16 bytes.
template <typename T, bool reverse, bool aligned>
struct ScanRow {
  using Sum = typename ScanTypes<T>::Sum;
  using Chunk = typename ScanTypes<T>::Chunk;

  const T* x;
  T* y;
  int n;  // at least 1

  // Where chunk c begins in memory; of a reverse sum the chunk's last element stands there.
  SINTER_DEVICE int begin(int c) const { return reverse ? n - 8 - 8 * c : 8 * c; }
  // The place in the chunk, as it lies in memory, of its element e.
  static SINTER_DEVICE constexpr int place(int e) { return reverse ? 7 - e : e; }

  SINTER_DEVICE void load(Chunk& out, int c) const {
    if constexpr (aligned) {
      load_chunk(out, x + begin(min(c, n / 8 - 1)));
    } else {
      const int first = begin(c);
#pragma unroll
      for (int k = 0; k < 8; ++k) set_element(out, k, x + min(max(first + k, 0), n - 1));
    }
  }
  SINTER_DEVICE void store(const Sum (&in)[8], int c) const {
    const int first = begin(c);
    if constexpr (aligned) {
      if (8 * c < n) store_chunk(y + first, in);
    } else {
#pragma unroll
      for (int k = 0; k < 8; ++k)
        if (first + k >= 0 && first + k < n) sinter::store(y + first + k, in[k]);
    }
  }

  static SINTER_DEVICE Sum total(const Chunk& chunk) {
    Sum sum = chunk[place(0)];
#pragma unroll
    for (int e = 1; e < 8; ++e) sum = scan_add(sum, chunk[place(e)]);
    return sum;
  }
  // The results of a chunk that begins with `base`, as they lie in memory.
  template <bool exclusive>
  static SINTER_DEVICE void results(Sum (&out)[8], const Chunk& chunk, Sum base) {
    Sum sum = chunk[place(0)];
    out[place(0)] = exclusive ? base : scan_add(base, sum);
#pragma unroll
    for (int e = 1; e < 8; ++e) {
      const Sum next = scan_add(sum, chunk[place(e)]);
      out[place(e)] = scan_add(base, exclusive ? sum : next);
      sum = next;
    }
  }
};

// The sums of the chunks 0 .. lane, of which each of the first `lanes` of a group has a lane and
// gives its total. All lanes of a warp call it; a warp has 32 / lanes such runs side by side.
template <int lanes, typename Sum>
SINTER_DEVICE Sum scan_lanes(Sum total, int lane) {
#pragma unroll
  for (int level = 0; 1 << level < lanes; ++level) {
    const int source = scan_source(lane, level) & (lanes - 1);
    const Sum other = __shfl_sync(0xffffffffu, total, source, lanes);
    if (scan_adds(lane, level)) total = scan_add(other, total);
  }
  return total;
}
// The sum of the lane before, which covers the chunks before this one; 0 for the first lane.
template <int lanes, typename Sum>
SINTER_DEVICE Sum lane_before(Sum sum, int lane) {
  const Sum other = __shfl_up_sync(0xffffffffu, sum, 1, lanes);
  return lane == 0 ? Sum(0) : other;
}

}  // namespace sinter
