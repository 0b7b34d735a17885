// The kernel of sorted rows: a stable counting sort of a call's numbers.
#pragma once

#include "kernels/sorted_rows/sort.cuh"

namespace sinter {

// positions[place] = the position of the number at that place; places[position] = the place of its
// number; ends[e] = how many numbers are 0 .. e. A result that nothing reads is null.
template <int runs>
SINTER_DEVICE void sort_numbers(const int* numbers, long long count, int* positions, int* places,
                                int* ends, typename CountingSort<runs>::Shared& shared) {
  CountingSort<runs> sort(shared, numbers, count);
  sort.count();
  if (ends != nullptr && blockIdx.x == 0)
    for (int e = static_cast<int>(threadIdx.x); e < runs; e += static_cast<int>(blockDim.x))
      ends[e] = sort.end_of(e);
  if (positions == nullptr && places == nullptr) return;
  sort.places([&](long long position, int place) {
    if (positions != nullptr) positions[place] = static_cast<int>(position);
    if (places != nullptr) places[position] = place;
  });
}

}  // namespace sinter
