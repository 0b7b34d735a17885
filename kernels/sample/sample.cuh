// Op `sample`; kernels/sample/order.h states the choice.
//
// A block chooses the token of one row. It goes over the row once if the temperature is not above
// 0; else once more for the draw, and for each of top_k and top_p, where they cut, once for each
// digit of 8 bits in which keys may differ. All sums are of integers, so that their order is free.
#pragma once

#include "kernels/common/position_key.cuh"
#include "kernels/isa/max.cuh"
#include "kernels/sample/sample_row.cuh"

namespace sinter {

constexpr int kSampleWarps = kSampleThreads / 32;
constexpr int kSampleDigits = 256;
// Copies of each digit's bin: lanes that add to one copy take turns, and logits have few exponents.
constexpr int kSampleCopies = 16;

// Sums of 64 bits in two counters: shared memory adds no more than 32 bits at a time.
struct SampleBins {
  math::u32 low[kSampleDigits][kSampleCopies], high[kSampleDigits][kSampleCopies];

  SINTER_DEVICE void add(math::u32 digit, int copy, math::u64 value) {
    const math::u32 part = static_cast<math::u32>(value);
    const math::u32 before = atomicAdd(&low[digit][copy], part);
    const math::u32 rest = static_cast<math::u32>(value >> 32) + (before + part < before ? 1 : 0);
    if (rest != 0) atomicAdd(&high[digit][copy], rest);
  }
  SINTER_DEVICE math::u64 operator()(int digit, int copy) const {
    return static_cast<math::u64>(high[digit][copy]) << 32 | low[digit][copy];
  }
};

struct SampleShared {
  SampleBins bins;
  math::u64 of_warp[kSampleWarps];
  // find_threshold's state: digits of the key, and the part of the target that larger keys leave.
  math::u32 key;
  math::u64 left;
  // The run that the draw fell on, and where in it.
  int run;
  math::u64 drawn;
};

// The index of the row's largest element, the smallest such; kNoToken where no token can be chosen.
// Every thread calls it.
template <typename T>
SINTER_DEVICE int find_largest(const LogitRow<T>& row, SampleShared& shared) {
  constexpr int ahead = 16 / sizeof(T);  // chunks of a thread on their way
  const int last = row.whole_end() - 1;
  math::u32 key = 0;
  int best = -1;  // the first chunk with that key
  for (int p = row.whole_begin() + static_cast<int>(threadIdx.x); p <= last;
       p += ahead * kSampleThreads) {
    float x[ahead][8];
#pragma unroll
    for (int a = 0; a < ahead; ++a) row.load_whole(x[a], min(p + a * kSampleThreads, last));
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      float largest = x[a][0];
#pragma unroll
      for (int e = 1; e < 8; ++e) largest = max_nan(largest, x[a][e]);
      const math::u32 k = math::order_key(largest);
      if (best >= 0 && k <= key) continue;
      key = k;
      best = min(p + a * kSampleThreads, last);
    }
  }

  math::u64 packed = 0;
  const auto take = [&](int chunk) {
    float x[8];
    row.load(x, chunk);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int i = row.index(chunk, e);
      const math::u64 other = position_key(x[e], i);
      if (row.has(i) && other > packed) packed = other;
    }
  };
  if (best >= 0) take(best);
  // The first and the last chunk where they are not whole; the two may be one chunk.
  if (threadIdx.x == 0 && row.whole_begin() > 0) take(0);
  if (threadIdx.x == 0 && row.whole_end() < row.chunks()) take(row.whole_end());

#pragma unroll
  for (int stride = 1; stride < 32; stride *= 2) {
    const math::u64 other = __shfl_xor_sync(0xffffffffu, packed, stride);
    if (other > packed) packed = other;
  }
  if (threadIdx.x % 32 == 0) shared.of_warp[threadIdx.x / 32] = packed;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kSampleWarps; ++w)
    if (shared.of_warp[w] > packed) packed = shared.of_warp[w];
  __syncthreads();
  if (!chooses(static_cast<math::u32>(packed >> 32))) return kNoToken;
  return key_position(packed);
}

// The sum over the threads before this one, and over all threads. Every thread calls sum_threads.
struct Sums {
  math::u64 before, all;
};
SINTER_DEVICE Sums sum_threads(math::u64 value, SampleShared& shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  math::u64 up_to = value;  // this lane
#pragma unroll
  for (int stride = 1; stride < 32; stride *= 2) {
    const math::u64 below = __shfl_up_sync(0xffffffffu, up_to, stride);
    if (lane >= stride) up_to += below;
  }
  if (lane == 31) shared.of_warp[warp] = up_to;
  __syncthreads();
  Sums sums{up_to - value, 0};
#pragma unroll
  for (int w = 0; w < kSampleWarps; ++w) {
    if (w < warp) sums.before += shared.of_warp[w];
    sums.all += shared.of_warp[w];
  }
  __syncthreads();
  return sums;
}

// The largest key >= `least` such that the measures of the elements whose key is at least that
// reach target(all measures of keys >= least), or a lower number with no element's key between the
// two: digits in which no keys differ stay 0. `least` if the target is not reached. A target is at
// least 1; one that depends on all measures takes a measure that is 0 for NaN. Found by digits of 8
// bits, from the highest. Every thread calls it.
template <typename T, typename Measure, typename Target>
SINTER_DEVICE math::u32 find_threshold(const LogitRow<T>& row, math::u32 least,
                                       const Measure& measure, const Target& target,
                                       SampleShared& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  math::u64 left = 0;
  math::u32 found = 0;
  for (int shift = 24; shift >= lowest_digit(static_cast<const T*>(nullptr)); shift -= 8) {
    for (int i = thread; i < kSampleDigits * kSampleCopies; i += kSampleThreads) {
      (&shared.bins.low[0][0])[i] = 0;
      (&shared.bins.high[0][0])[i] = 0;
    }
    __syncthreads();
    for (int p = thread; p < row.chunks(); p += kSampleThreads) {
      float x[8];
      row.load(x, p);
      unsigned taken = 0;  // bit e: element e
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const math::u32 key = sampling_key(x[e]);
        const bool prefix = shift == 24 || key >> (shift + 8) == found >> (shift + 8);
        if (key >= least && prefix) taken |= 1u << e;
      }
      if (taken == 0) continue;
      math::u64 value[8];
      measure(value, x);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if ((taken >> e & 1u) != 0)
          shared.bins.add(sampling_key(x[e]) >> shift & 255u, thread % kSampleCopies, value[e]);
    }
    __syncthreads();
    // Thread t has the digit 255 - t.
    math::u64 bin = 0;
    if (thread < kSampleDigits) {
#pragma unroll
      for (int c = 0; c < kSampleCopies; ++c)
        bin += shared.bins(kSampleDigits - 1 - thread, (thread + c) % kSampleCopies);
    }
    const Sums sums = sum_threads(bin, shared);
    if (shift == 24) left = target(sums.all);
    const bool reached = sums.before < left && left - sums.before <= bin;
    const bool never = thread == kSampleDigits - 1 && left > sums.all;
    if (reached || never) {
      shared.left = left - sums.before;
      shared.key = found | static_cast<math::u32>(kSampleDigits - 1 - thread) << shift;
    }
    __syncthreads();
    left = shared.left;
    found = shared.key;
  }
  return found < least ? least : found;
}

template <typename T>
SINTER_DEVICE void sample(const T* logits, long long stride, int count, const float* temperature,
                          const int* top_k, const float* top_p, const int* seed, const int* step,
                          int* out, SampleShared& shared) {
  const int number = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const LogitRow<T> row(logits + number * stride, count);
  const float heat = temperature[number];
  const int largest_at = find_largest(row, shared);
  if (!(heat > 0.0f) || largest_at == kNoToken) {
    if (thread == 0) out[number] = largest_at;
    return;
  }

  const float largest = row[largest_at];
  const auto weigh = [&](math::u64(&weight)[8], const float(&x)[8]) {
    float exponent[8];  // a division may branch: all of them first, so that the rest overlaps
#pragma unroll
    for (int e = 0; e < 8; ++e) exponent[e] = sampling_exponent(x[e], largest, heat);
#pragma unroll
    for (int e = 0; e < 8; ++e) weight[e] = sampling_weight(exponent[e]);
  };
  math::u32 least = 0;
  if (const int k = top_k[number]; k > 0 && k < count) {
    const auto count_each = [](math::u64(&one)[8], const float(&)[8]) {
      for (math::u64& value : one) value = 1;
    };
    const auto target = [&](math::u64) { return static_cast<math::u64>(k); };
    least = find_threshold(row, least, count_each, target, shared);
  }
  if (const float p = top_p[number]; p < 1.0f) {
    const auto target = [&](math::u64 all) { return sampling_target(p, all); };
    least = find_threshold(row, least, weigh, target, shared);
  }

  // The draw: a thread has a run of chunks, so that running sums follow the vocabulary; then each
  // chunk of the run that was drawn has a thread.
  static_assert(kMaxSampled / 8 + 1 <= kSampleThreads * kSampleThreads);
  const auto weigh_kept = [&](math::u64(&weight)[8], int chunk) {
    float x[8];
    row.load(x, chunk);
    weigh(weight, x);
    math::u64 sum = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (sampling_key(x[e]) < least) weight[e] = 0;
      sum += weight[e];
    }
    return sum;
  };
  const int chunks = row.chunks(), length = (chunks + kSampleThreads - 1) / kSampleThreads;
  math::u64 weight[8], own = 0;
  for (int p = thread * length; p < chunks && p < (thread + 1) * length; ++p)
    own += weigh_kept(weight, p);
  Sums sums = sum_threads(own, shared);
  const math::u64 drawn = sampling_below(sampling_bits(seed[number], step[number]), sums.all);
  if (drawn >= sums.before && drawn - sums.before < own) {
    shared.run = thread;
    shared.drawn = drawn - sums.before;
  }
  __syncthreads();
  const int chunk = shared.run * length + thread;
  const math::u64 in_run = shared.drawn;
  own = thread < length && chunk < chunks ? weigh_kept(weight, chunk) : 0;
  sums = sum_threads(own, shared);
  if (in_run < sums.before || in_run - sums.before >= own) return;
  math::u64 left = in_run - sums.before;
  int chosen = 0;
#pragma unroll
  for (int e = 0; e < 7; ++e) {
    if (chosen == e && left >= weight[e]) {
      left -= weight[e];
      chosen = e + 1;
    }
  }
  out[number] = row.index(chunk, chosen);
}

}  // namespace sinter
