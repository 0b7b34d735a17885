// `scatter_add`: row v of the result is the sum of the updates n with index[n] = v, n ascending.
//
// A block has a run of kRows rows of the result. Its warps read the whole index, each a part of
// neighbouring numbers, and list in shared memory the updates that belong to the block's rows: in
// ascending order, since ballots keep it. Then each warp takes a row and 256 of its columns at a
// time, walks the lists and adds what belongs to the row; several updates are loaded at once and
// added one after the other. Where a list is too short, the warps walk the index itself. So no sum
// depends on the order in which threads run, and an index that names no row belongs to no block.
//
// Config: Element, kRows, kGroups (blocks that share the columns of such a run; 1 if kRows is not),
// kAligned (rows of the updates and of the result begin and end at multiples of a chunk).
#pragma once

#include "kernels/common/vector.cuh"
#include "kernels/scatter/layout.h"

namespace sinter {

struct ScatterShared {
  int update[kScatterWarps][kScatterListed];
  unsigned char row[kScatterWarps][kScatterListed];  // of the block's
  int listed[kScatterWarps];                         // or more, which then are not in the list
};

struct ScatterSizes {
  long long rows, columns;  // of the result
};

// Eight columns of some updates, as they lie in memory. The sum's registers, not its loads, wait.
template <typename T>
struct ScatterTypes {
  using Chunk = Packed<T>;
  static constexpr int kAtOnce = 8;
};
template <>
struct ScatterTypes<float> {
  using Chunk = float[8];
  static constexpr int kAtOnce = 4;
};

// The warp's part of the index: updates of the block's rows, in ascending order.
SINTER_DEVICE void list_updates(const int* index, long long count, unsigned first, unsigned rows,
                                ScatterShared& shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const long long part = (count + kScatterThreads - 1) / kScatterThreads * 32;
  const long long begin = warp * part;
  const long long end = begin + part < count ? begin + part : count;
  constexpr int kLoads = 4;  // on their way
  int listed = 0;
  for (long long n = begin; n < end; n += 32 * kLoads) {
    unsigned row[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const long long at = n + 32 * k + lane;
      row[k] = at < end ? static_cast<unsigned>(index[at]) - first : rows;
    }
#pragma unroll
    for (int k = 0; k < kLoads; ++k) {
      const unsigned found = __ballot_sync(0xffffffffu, row[k] < rows);
      const int place = listed + __popc(found & ((1u << lane) - 1u));
      if (row[k] < rows && place < kScatterListed) {
        shared.update[warp][place] = static_cast<int>(n) + 32 * k + lane;
        shared.row[warp][place] = static_cast<unsigned char>(row[k]);
      }
      listed += __popc(found);
    }
  }
  if (lane == 0) shared.listed[warp] = listed;
}

// The sums of eight columns of a row.
template <typename Config>
class ScatterSum {
 public:
  using T = typename Config::Element;

  SINTER_DEVICE ScatterSum(const T* updates, long long stride, int valid)
      : updates_(updates), stride_(stride), valid_(valid) {
#pragma unroll
    for (int e = 0; e < 8; ++e) sum_[e] = 0.0f;
  }

  // Adds each of 32 updates, one per lane, whose bit is set in `found`. All lanes call it.
  SINTER_DEVICE void add(unsigned found, int update) {
    constexpr int kAtOnce = ScatterTypes<T>::kAtOnce;
    while (found != 0) {
      typename ScatterTypes<T>::Chunk chunks[kAtOnce];
      const int taken = min(__popc(found), kAtOnce);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int n = __shfl_sync(0xffffffffu, update, k < taken ? __ffs(found) - 1 : 0);
        if (k < taken) load(chunks[k], updates_ + n * stride_);
        found &= k < taken ? found - 1 : found;
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (k >= taken) continue;
#pragma unroll
        for (int e = 0; e < 8; ++e) sum_[e] = math::add(sum_[e], chunks[k][e]);
      }
    }
  }

  // Gives the sums to `out`, from element `at` on.
  template <typename Result>
  SINTER_DEVICE void give(const Result& out, long long at) const {
    if (valid_ <= 0) return;
    if constexpr (Config::kAligned) {
      out.set_chunk(at, sum_);
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (e < valid_) out.set(at + e, sum_[e]);
    }
  }

 private:
  template <typename Chunk>
  SINTER_DEVICE void load(Chunk& chunk, const T* p) const {
    if constexpr (Config::kAligned) {
      if (valid_ > 0) load_chunk(chunk, p);
    } else {
      load_each(chunk, p);
    }
  }
  SINTER_DEVICE void load_each(float (&chunk)[8], const T* p) const {
#pragma unroll
    for (int e = 0; e < 8; ++e) chunk[e] = e < valid_ ? sinter::load(p + e) : 0.0f;
  }
  SINTER_DEVICE void load_each(Packed<T>& chunk, const T* p) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) chunk.word[k] = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (e < valid_) chunk.word[e / 2] |= static_cast<unsigned>(p[e].bits) << 16 * (e % 2);
  }

  const T* const updates_;
  const long long stride_;
  const int valid_;  // columns
  float sum_[8];
};

// index: `count` numbers; the rows of `updates` are `stride` apart. `out` takes elements of the
// result: out.set(at, x), out.set_chunk(at, values).
template <typename Config, typename Result>
SINTER_DEVICE void scatter_add(const int* index, long long count,
                               const typename Config::Element* updates, long long stride,
                               const Result& out, ScatterSizes sizes, ScatterShared& shared) {
  static_assert(Config::kRows <= 256 && (Config::kRows == 1 || Config::kGroups == 1));
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const long long block = static_cast<long long>(blockIdx.x);
  const long long first = block / Config::kGroups * Config::kRows;
  const int group = static_cast<int>(block % Config::kGroups);
  const long long left = sizes.rows - first;
  const int rows = left < Config::kRows ? static_cast<int>(left) : Config::kRows;
  list_updates(index, count, static_cast<unsigned>(first), static_cast<unsigned>(rows), shared);
  __syncthreads();
  bool complete = true;
#pragma unroll
  for (int w = 0; w < kScatterWarps; ++w) complete = complete && shared.listed[w] <= kScatterListed;

  const long long slices = (sizes.columns + kScatterColumns - 1) / kScatterColumns;
  const long long own = (slices - group + Config::kGroups - 1) / Config::kGroups;
  for (long long item = warp; item < rows * own; item += kScatterWarps) {
    const int row = static_cast<int>(item / own);
    const long long slice = item % own * Config::kGroups + group;
    const long long column = slice * kScatterColumns + 8 * lane;
    const long long there = sizes.columns - column;
    const int valid = there <= 0 ? 0 : there < 8 ? static_cast<int>(there) : 8;
    ScatterSum<Config> sum(updates + column, stride, valid);
    if (complete) {
      for (int w = 0; w < kScatterWarps; ++w)
        for (int i = 0; i < shared.listed[w]; i += 32) {
          const bool listed = i + lane < shared.listed[w];
          const int update = listed ? shared.update[w][i + lane] : 0;
          const bool is_own = listed && shared.row[w][i + lane] == row;
          sum.add(__ballot_sync(0xffffffffu, is_own), update);
        }
    } else {
      for (long long n = 0; n < count; n += 32) {
        const bool is_own = n + lane < count && index[n + lane] == first + row;
        sum.add(__ballot_sync(0xffffffffu, is_own), static_cast<int>(n) + lane);
      }
    }
    sum.give(out, (first + row) * sizes.columns + column);
  }
}

}  // namespace sinter
