// Kernels that do nothing but move memory, as fast as accesses of 16 bytes go: the ceilings that
// other kernels' rates are held against. Memory is aligned to 16 bytes and counted in words of 16.
#pragma once

#include "sinter/vector.cuh"

namespace sinter {

// A thread has kBandwidthWords loads in flight before it uses the first. Its words stand apart by
// the block's width, so that a warp's accesses are contiguous.
constexpr int kBandwidthThreads = 256, kBandwidthWords = 8;
constexpr int kBandwidthBlock = kBandwidthThreads * kBandwidthWords;  // words of a block

// Zeros for words past the end.
SINTER_DEVICE void load_bandwidth_words(uint4 (&words)[kBandwidthWords], const uint4* in,
                                        long long begin, long long count) {
#pragma unroll
  for (int i = 0; i < kBandwidthWords; ++i) {
    const long long at = begin + i * kBandwidthThreads;
    words[i] = at < count ? __ldg(in + at) : make_uint4(0, 0, 0, 0);
  }
}

// out[i] = in[i] for i < count; the two do not overlap.
SINTER_DEVICE void copy_words(const uint4* in, uint4* out, long long count) {
  const long long begin = static_cast<long long>(blockIdx.x) * kBandwidthBlock + threadIdx.x;
  uint4 words[kBandwidthWords];
  load_bandwidth_words(words, in, begin, count);
#pragma unroll
  for (int i = 0; i < kBandwidthWords; ++i) {
    const long long at = begin + i * kBandwidthThreads;
    if (at < count) store_words(out + at, words[i]);
  }
}

// Reads in[0 .. count). A thread whose words combine to `never` stores them: the compiler cannot
// leave the loads out, and with random data next to nothing is written.
SINTER_DEVICE void read_words(const uint4* in, unsigned* out, long long count, unsigned never) {
  const long long begin = static_cast<long long>(blockIdx.x) * kBandwidthBlock + threadIdx.x;
  uint4 words[kBandwidthWords];
  load_bandwidth_words(words, in, begin, count);
  unsigned all = 0;
#pragma unroll
  for (int i = 0; i < kBandwidthWords; ++i)
    all += words[i].x + words[i].y + words[i].z + words[i].w;
  if (all == never) *out = all;
}

}  // namespace sinter
