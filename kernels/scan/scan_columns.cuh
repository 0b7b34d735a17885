// `cumulative_sum` along an axis that is not the last: the elements of a row are strided; elements
// of neighbouring rows are adjacent. A row of the sum is called a column here.
//
// A block has 32 columns, or 32 pairs of them, and kChunks threads for each; a warp's threads have
// neighbouring columns, and chunks of the same number in them. The block walks down its columns
// group by group: a thread adds a chunk, then chunks and threads are dealt anew through shared
// memory, so that the chunks of a column are the lanes of a warp and add as in a row (scan.cuh).
// The next group's loads are issued before the present one is added.
//
// Config, beside the sum's: kChunks (a power of two, fewer than 32 only where no column has more
// chunks), kPair: a thread has two neighbouring columns of a type of two bytes, which never lie on
// both sides of an end of `inner`, each pair at a multiple of 4 bytes.
#pragma once

#include "kernels/scan/scan.cuh"

namespace sinter {

// One element, or two of neighbouring columns.
template <typename T, bool pair>
struct Across {
  using Sum = typename ScanTypes<T>::Sum;
  Sum x;
  SINTER_DEVICE void load(const T* p) { x = sinter::load(p); }
  SINTER_DEVICE Sum operator[](int) const { return x; }
  static SINTER_DEVICE void store(T* p, const Sum (&in)[1]) { sinter::store(p, in[0]); }
};
template <typename T>
struct Across<T, true> {
  unsigned word;
  SINTER_DEVICE void load(const T* p) { word = *reinterpret_cast<const unsigned*>(p); }
  SINTER_DEVICE float operator[](int k) const {
    return low_half(static_cast<const T*>(nullptr), k == 0 ? word & 0xffffu : word >> 16);
  }
  static SINTER_DEVICE void store(T* p, const float (&in)[2]) {
    *reinterpret_cast<unsigned*>(p) = pack(p, in[0], in[1]);
  }
};

// x: [outer][n][inner], rows of the outer axis `outer_stride` apart, neighbours along n `stride`;
// y is dense.
struct ColumnSizes {
  long long outer, n, inner, outer_stride, stride;
};

template <typename Config>
struct ColumnShared {
  static constexpr int kAcross = Config::kPair ? 2 : 1;  // columns of a thread
  // A place more than chunks, so that columns begin in different banks.
  typename ScanTypes<typename Config::Element>::Sum sums[kAcross * 32][Config::kChunks + 1];
};

template <typename Config>
SINTER_DEVICE void scan_columns(const typename Config::Element* x, typename Config::Element* y,
                                const ColumnSizes& sizes, ColumnShared<Config>& shared) {
  using T = typename Config::Element;
  using Sum = typename ScanTypes<T>::Sum;
  constexpr int chunks = Config::kChunks, across = ColumnShared<Config>::kAcross;

  const int n = static_cast<int>(sizes.n);
  const long long units = sizes.outer * sizes.inner / across;
  if (n == 0 || units == 0) return;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32, chunk = thread / 32;        // as elements are read and written
  const int column = thread / chunks, l = thread % chunks;  // as chunks are added
  const long long unit = static_cast<long long>(blockIdx.x) * 32 + lane;
  const bool stored = unit < units;
  const long long first = (stored ? unit : units - 1) * across;
  const long long outer = first / sizes.inner, inner = first % sizes.inner;
  x += outer * sizes.outer_stride + inner;
  y += outer * sizes.n * sizes.inner + inner;

  Across<T, Config::kPair> next[8];
  const auto load_group = [&](int group) {
    const int begin = group * kScanGroup + chunk * 8;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      next[e].load(x + scan_position(min(begin + e, n - 1), n, Config::kReverse) * sizes.stride);
  };
  load_group(0);
  ScanCarry<Sum> carry[across];  // of `column` and of the one 32 columns on
  const int groups = (n + kScanGroup - 1) / kScanGroup;
  for (int group = 0; group < groups; ++group) {
    Across<T, Config::kPair> elements[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) elements[e] = next[e];
    if (group + 1 < groups) load_group(group + 1);

#pragma unroll
    for (int k = 0; k < across; ++k) {
      Sum sum = elements[0][k];
#pragma unroll
      for (int e = 1; e < 8; ++e) sum = scan_add(sum, elements[e][k]);
      shared.sums[k * 32 + lane][chunk] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < across; ++k) {
      Sum& place = shared.sums[k * 32 + column][l];
      const Sum sum = scan_lanes<chunks>(place, l);
      place = carry[k].before(lane_before<chunks>(sum, l));
      carry[k].pass_group(__shfl_sync(0xffffffffu, sum, chunks - 1, chunks), group);
    }
    __syncthreads();

    Sum base[across], sum[across], out[across];
#pragma unroll
    for (int k = 0; k < across; ++k) base[k] = shared.sums[k * 32 + lane][chunk];
    const int begin = group * kScanGroup + chunk * 8;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
#pragma unroll
      for (int k = 0; k < across; ++k) {
        const Sum up_to = e == 0 ? elements[e][k] : scan_add(sum[k], elements[e][k]);
        if (Config::kExclusive)
          out[k] = e == 0 ? base[k] : scan_add(base[k], sum[k]);
        else
          out[k] = scan_add(base[k], up_to);
        sum[k] = up_to;
      }
      if (stored && begin + e < n)
        Across<T, Config::kPair>::store(
            y + scan_position(begin + e, n, Config::kReverse) * sizes.inner, out);
    }
  }
}

}  // namespace sinter
