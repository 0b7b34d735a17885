// Op `sample`; ir/sampling.h states the choice.
#pragma once

#include "ir/sampling.h"
#include "sinter/vector.cuh"

namespace sinter {

constexpr int kSampleThreads = 1024;

struct SampleShared {
  math::u64 bins[256];
  math::u64 partial[kSampleThreads];
  math::u64 left;       // of the target, below the digits found so far
  math::u32 key;        // the digits found so far
  int chosen;
};

// The block's maximum of (key, smaller index first), packed so that the larger number wins.
SINTER_DEVICE math::u64 block_max(math::u64 value, SampleShared& shared) {
  shared.partial[threadIdx.x] = value;
  __syncthreads();
  for (int half = kSampleThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half && shared.partial[threadIdx.x + half] > shared.partial[threadIdx.x])
      shared.partial[threadIdx.x] = shared.partial[threadIdx.x + half];
    __syncthreads();
  }
  const math::u64 result = shared.partial[0];
  __syncthreads();
  return result;
}

// The row's threads' values added.
SINTER_DEVICE math::u64 block_sum(math::u64 value, SampleShared& shared) {
  shared.partial[threadIdx.x] = value;
  __syncthreads();
  for (int half = kSampleThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared.partial[threadIdx.x] += shared.partial[threadIdx.x + half];
    __syncthreads();
  }
  const math::u64 result = shared.partial[0];
  __syncthreads();
  return result;
}

// The largest key >= `least` such that measure(i), summed over the elements whose key is at least
// that, reaches `target` (which the sum over all keys >= `least` does): found by its digits of 8
// bits, from the highest.
template <typename Key, typename Measure>
SINTER_DEVICE math::u32 find_threshold(int count, math::u32 least, math::u64 target, const Key& key,
                                       const Measure& measure, SampleShared& shared) {
  if (threadIdx.x == 0) {
    shared.left = target;
    shared.key = 0;
  }
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (threadIdx.x < 256) shared.bins[threadIdx.x] = 0;
    __syncthreads();
    const math::u32 found = shared.key;
    for (int i = threadIdx.x; i < count; i += kSampleThreads) {
      const math::u32 k = key(i);
      const bool prefix = shift == 24 || k >> (shift + 8) == found >> (shift + 8);
      if (k >= least && prefix) atomicAdd(&shared.bins[k >> shift & 255u], measure(i));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = 255;
      while (digit > 0 && shared.bins[digit] < shared.left) shared.left -= shared.bins[digit--];
      shared.key = found | static_cast<math::u32>(digit) << shift;
    }
    __syncthreads();
  }
  const math::u32 result = shared.key;
  __syncthreads();
  return result < least ? least : result;
}

// A block chooses the token of one row.
template <typename T>
SINTER_DEVICE void sample(const T* logits, long long stride, int count, const float* temperature,
                          const int* top_k, const float* top_p, const int* seed, const int* step,
                          int* out, SampleShared& shared) {
  const int row = blockIdx.x;
  const T* x = logits + row * stride;
  const float heat = temperature[row];
  const auto key = [&](int i) { return sampling_key(load(x + i)); };

  math::u64 best = 0;
  for (int i = threadIdx.x; i < count; i += kSampleThreads) {
    const math::u64 packed = static_cast<math::u64>(key(i)) << 32 | ~static_cast<math::u32>(i);
    if (packed > best) best = packed;
  }
  best = block_max(best, shared);
  const int largest_at = static_cast<int>(~static_cast<math::u32>(best));
  if (!(heat > 0.0f)) {
    if (threadIdx.x == 0) out[row] = largest_at;
    return;
  }

  const float largest = load(x + largest_at);
  const auto weight = [&](int i) { return sampling_weight(load(x + i), largest, heat); };
  const auto one = [](int) { return math::u64{1}; };
  math::u32 least = 0;
  if (top_k[row] > 0 && top_k[row] < count)
    least = find_threshold(count, 0, static_cast<math::u64>(top_k[row]), key, one, shared);
  const auto weight_kept = [&](int begin, int end) {
    math::u64 total = 0;
    for (int i = begin; i < end; ++i)
      if (key(i) >= least) total += weight(i);
    return total;
  };
  // Thread t owns a run of the row, so that running sums follow the vocabulary.
  const int run = (count + kSampleThreads - 1) / kSampleThreads;
  const int begin = min(static_cast<int>(threadIdx.x) * run, count), end = min(begin + run, count);
  if (top_p[row] < 1.0f) {
    const math::u64 total = block_sum(weight_kept(begin, end), shared);
    least = find_threshold(count, least, sampling_target(top_p[row], total), key, weight, shared);
  }
  const math::u64 own = weight_kept(begin, end);
  const math::u64 total = block_sum(own, shared);
  const math::u64 drawn = sampling_below(sampling_bits(seed[row], step[row], row), total);
  shared.partial[threadIdx.x] = own;
  if (threadIdx.x == 0) shared.chosen = largest_at;  // of a row without any weight: all NaN
  __syncthreads();
  math::u64 before = 0;
  for (unsigned t = 0; t < threadIdx.x; ++t) before += shared.partial[t];
  if (drawn >= before && drawn - before < own) {
    math::u64 left = drawn - before;
    for (int i = begin; i < end; ++i) {
      if (key(i) < least) continue;
      const math::u64 w = weight(i);
      if (left < w) {
        shared.chosen = i;
        break;
      }
      left -= w;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) out[row] = shared.chosen;
}

}  // namespace sinter
