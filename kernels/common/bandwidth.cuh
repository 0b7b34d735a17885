// Kernels that do nothing but move memory, as fast as accesses of 16 bytes go: the ceilings that
// other kernels' rates are held against. Memory is aligned to 16 bytes and counted in words of 16.
#pragma once

#include "kernels/common/vector.cuh"

namespace sinter {

// A thread has kBandwidthWords loads in flight before it uses the first. Its words stand apart by
// the block's width, so that a warp's accesses are contiguous.
constexpr int kBandwidthThreads = 256, kBandwidthWords = 8;
constexpr int kBandwidthBlock = kBandwidthThreads * kBandwidthWords;  // words of a block

// Whole blocks of words are moved without tests: with a test for each word the compiler would wait
// for some loads before it starts the others.
SINTER_DEVICE void load_bandwidth_words(uint4 (&words)[kBandwidthWords], const uint4* in) {
#pragma unroll
  for (int i = 0; i < kBandwidthWords; ++i) words[i] = __ldg(in + i * kBandwidthThreads);
}

// out[i] = in[i] for i < count; the two do not overlap.
SINTER_DEVICE void copy_words(const uint4* in, uint4* out, long long count) {
  const long long begin = static_cast<long long>(blockIdx.x) * kBandwidthBlock;
  if (begin + kBandwidthBlock > count) {
    for (long long at = begin + threadIdx.x; at < count; at += kBandwidthThreads)
      st_global_v4(out + at, __ldg(in + at));
    return;
  }
  uint4 words[kBandwidthWords];
  load_bandwidth_words(words, in + begin + threadIdx.x);
#pragma unroll
  for (int i = 0; i < kBandwidthWords; ++i)
    st_global_v4(out + begin + threadIdx.x + i * kBandwidthThreads, words[i]);
}

// Reads in[0 .. count). A thread whose words combine to `never` stores them: the compiler cannot
// leave the loads out, and with random data next to nothing is written.
SINTER_DEVICE void read_words(const uint4* in, unsigned* out, long long count, unsigned never) {
  const long long begin = static_cast<long long>(blockIdx.x) * kBandwidthBlock;
  unsigned all = 0;
  const auto add = [&all](const uint4& word) { all += word.x + word.y + word.z + word.w; };
  if (begin + kBandwidthBlock > count) {
    for (long long at = begin + threadIdx.x; at < count; at += kBandwidthThreads)
      add(__ldg(in + at));
  } else {
    uint4 words[kBandwidthWords];
    load_bandwidth_words(words, in + begin + threadIdx.x);
#pragma unroll
    for (int i = 0; i < kBandwidthWords; ++i) add(words[i]);
  }
  if (all == never) *out = all;
}

}  // namespace sinter
