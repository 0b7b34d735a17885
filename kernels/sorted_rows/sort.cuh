// A stable counting sort of numbers by one block: every warp counts the numbers of its part, the
// counts are added up by number and warp, and every warp gives its numbers their places.
#pragma once

#include "kernels/common/vector.cuh"
#include "kernels/sorted_rows/layout.h"

namespace sinter {

template <int runs>
class CountingSort {
  static constexpr int kWarps = sort_warps(runs);
  static constexpr int kNumbers = runs + 1;  // the last one stands for all that are none of the runs'

 public:
  struct Shared {
    int counts[kWarps][kNumbers];
  };

  SINTER_DEVICE CountingSort(Shared& shared, const int* numbers, long long count)
      : shared_(shared), numbers_(numbers), count_(count) {
    const long long part = (count + kWarps - 1) / kWarps;
    begin_ = warp() * part < count ? warp() * part : count;
    end_ = begin_ + part < count ? begin_ + part : count;
  }

  // Counts; after that shared.counts[w][e] is the place of the first number e of warp w's part.
  SINTER_DEVICE void count() {
    for (int e = lane(); e < kNumbers; e += 32) shared_.counts[warp()][e] = 0;
    __syncwarp();
    each([](long long, int) {});
    __syncthreads();
    if (warp() == 0) {
      int before = 0;  // numbers that are less than those of this round
      for (int first = 0; first < kNumbers; first += 32) {
        const int e = first + lane();
        int own = 0;
        if (e < kNumbers)
          for (int w = 0; w < kWarps; ++w) own += shared_.counts[w][e];
        int place = own;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
          const int other = __shfl_up_sync(0xffffffffu, place, step);
          if (lane() >= step) place += other;
        }
        const int all = __shfl_sync(0xffffffffu, place, 31);
        place += before - own;
        before += all;
        if (e < kNumbers)
          for (int w = 0; w < kWarps; ++w) {
            const int here = shared_.counts[w][e];
            shared_.counts[w][e] = place;
            place += here;
          }
      }
    }
    __syncthreads();
  }

  // Calls take(position, place) for each number. Changes the counts.
  template <typename Take>
  SINTER_DEVICE void places(Take take) {
    each(take);
  }

  // How many numbers are 0 .. e.
  SINTER_DEVICE int end_of(int e) const { return shared_.counts[0][e + 1]; }

 private:
  static SINTER_DEVICE int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static SINTER_DEVICE int warp() { return static_cast<int>(threadIdx.x) / 32; }
  static SINTER_DEVICE constexpr int bits() {
    int count = 0;
    while (1 << count < kNumbers) ++count;
    return count;
  }

  // For each number of the warp's part: take(position, the count of its number before it). Counts
  // the numbers.
  template <typename Take>
  SINTER_DEVICE void each(Take take) {
    int* const counts = shared_.counts[warp()];
    for (long long first = begin_; first < end_; first += 32) {
      const long long position = first + lane();
      const bool has = position < end_;
      int number = has ? numbers_[position] : 0;
      if (number < 0 || number >= runs) number = runs;
      // The lanes with the same number.
      unsigned peers = __ballot_sync(0xffffffffu, has);
#pragma unroll
      for (int bit = 0; bit < bits(); ++bit) {
        const bool is_set = (number >> bit & 1) != 0;
        const unsigned set = __ballot_sync(0xffffffffu, is_set);
        peers &= is_set ? set : ~set;
      }
      const int before = counts[number], ahead = __popc(peers & ((1u << lane()) - 1u));
      __syncwarp();
      if (has) {
        take(position, before + ahead);
        if (ahead == 0) counts[number] = before + __popc(peers);
      }
      __syncwarp();
    }
  }

  Shared& shared_;
  const int* numbers_;
  long long count_, begin_, end_;
};

}  // namespace sinter
