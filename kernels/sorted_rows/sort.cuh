// A stable counting sort of numbers. A block has a part of them, and each of its warps a part of
// that: the warp counts its numbers and, when the numbers of all blocks and warps before it are
// known, gives them their places.
#pragma once

#include "kernels/common/vector.cuh"
#include "kernels/sorted_rows/layout.h"

namespace sinter {

template <int runs>
class CountingSort {
  static constexpr int kWarps = sort_warps(runs);
  static constexpr int kAhead = 8;           // steps of 32 numbers that are loaded together
  static constexpr int kNumbers = runs + 1;  // the last one: of no run

 public:
  struct Shared {
    int counts[kWarps][kNumbers];
    int of_all[kNumbers], of_blocks_before[kNumbers];
  };

  SINTER_DEVICE CountingSort(Shared& shared, const int* numbers, long long count)
      : shared_(shared), numbers_(numbers), count_(count) {
    block_begin_ = at_most_count(static_cast<long long>(blockIdx.x) * kSortedPerBlock);
    const long long block_end = at_most_count(block_begin_ + kSortedPerBlock);
    const long long part = (block_end - block_begin_ + kWarps - 1) / kWarps;
    begin_ = block_begin_ + warp() * part < block_end ? block_begin_ + warp() * part : block_end;
    end_ = begin_ + part < block_end ? begin_ + part : block_end;
  }

  // Counts; after that shared.counts[w][e] is the place of the first number e of warp w's part.
  SINTER_DEVICE void count() {
    each_run([&](int e) {
      for (int w = 0; w < kWarps; ++w) shared_.counts[w][e] = 0;
      shared_.of_all[e] = shared_.of_blocks_before[e] = 0;
    });
    __syncthreads();
    if (gridDim.x > 1) count_all();
    each([](long long, int) {});
    __syncthreads();
    if (gridDim.x == 1) {
      each_run([&](int e) {
        int own = 0;
        for (int w = 0; w < kWarps; ++w) own += shared_.counts[w][e];
        shared_.of_all[e] = own;
      });
      __syncthreads();
    }
    if (warp() == 0) add_up(shared_.of_all);
    __syncthreads();
    each_run([&](int e) {
      int place = shared_.of_all[e] + shared_.of_blocks_before[e];
      for (int w = 0; w < kWarps; ++w) {
        const int here = shared_.counts[w][e];
        shared_.counts[w][e] = place;
        place += here;
      }
    });
    __syncthreads();
  }

  // Calls take(position, place) for each number. Changes the counts.
  template <typename Take>
  SINTER_DEVICE void places(Take take) {
    each(take);
  }

  // How many numbers are 0 .. e.
  SINTER_DEVICE int end_of(int e) const { return shared_.of_all[e + 1]; }

 private:
  static SINTER_DEVICE int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static SINTER_DEVICE int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static SINTER_DEVICE constexpr int bits() {
    int count = 0;
    while (1 << count < kNumbers) ++count;
    return count;
  }

  SINTER_DEVICE long long at_most_count(long long position) const {
    return position < count_ ? position : count_;
  }
  // The number at a position before `end`.
  SINTER_DEVICE int number_at(long long position, long long end) const {
    const int number = position < end ? numbers_[position] : runs;
    return number < 0 || number >= runs ? runs : number;
  }

  // For each number that a sort tells apart, by one thread: take(number).
  template <typename Take>
  SINTER_DEVICE void each_run(Take take) {
    for (int e = static_cast<int>(threadIdx.x); e < kNumbers; e += static_cast<int>(blockDim.x))
      take(e);
  }

  // Counts the numbers of all blocks, and of those before this one.
  SINTER_DEVICE void count_all() {
    const int threads = static_cast<int>(blockDim.x);
    for (long long first = threadIdx.x; first < count_; first += threads * kAhead) {
      int numbers[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) numbers[i] = number_at(first + i * threads, count_);
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const long long position = first + i * threads;
        if (position < count_) atomicAdd(&shared_.of_all[numbers[i]], 1);
        if (position < block_begin_) atomicAdd(&shared_.of_blocks_before[numbers[i]], 1);
      }
    }
  }

  // One warp: each count becomes the sum of those before it.
  static SINTER_DEVICE void add_up(int (&counts)[kNumbers]) {
    int before = 0;
    for (int first = 0; first < kNumbers; first += 32) {
      const int e = first + lane(), own = e < kNumbers ? counts[e] : 0;
      int sum = own;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, sum, step);
        if (lane() >= step) sum += other;
      }
      if (e < kNumbers) counts[e] = before + sum - own;
      before += __shfl_sync(0xffffffffu, sum, 31);
    }
  }

  // For each number of the warp's part: take(position, the count of its number before it). Counts
  // the numbers.
  template <typename Take>
  SINTER_DEVICE void each(Take take) {
    for (long long first = begin_; first < end_; first += 32 * kAhead) {
      int numbers[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) numbers[i] = number_at(first + 32 * i + lane(), end_);
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
        if (first + 32 * i < end_) next(first + 32 * i + lane(), numbers[i], take);
    }
  }

  // The same for 32 numbers, of which each lane has one.
  template <typename Take>
  SINTER_DEVICE void next(long long position, int number, Take take) {
    const bool has = position < end_;
    unsigned peers = __ballot_sync(0xffffffffu, has);  // the lanes with the same number
#pragma unroll
    for (int bit = 0; bit < bits(); ++bit) {
      const bool is_set = (number >> bit & 1) != 0;
      const unsigned set = __ballot_sync(0xffffffffu, is_set);
      peers &= is_set ? set : ~set;
    }
    int* const counts = shared_.counts[warp()];
    const int before = counts[number], ahead = __popc(peers & ((1u << lane()) - 1u));
    __syncwarp();
    if (has) {
      take(position, before + ahead);
      if (ahead == 0) counts[number] = before + __popc(peers);
    }
    __syncwarp();
  }

  Shared& shared_;
  const int* numbers_;
  long long count_, block_begin_, begin_, end_;  // of all; of the block; of the warp
};

}  // namespace sinter
