// The parts of a block's tiles in the order in which they are used: elements of the keys of a tile,
// kPartElements at a time, then its values, value_part_keys keys at a time.
#pragma once

#include "kernels/float_attention/attention_block.cuh"
#include "kernels/isa/cp_async.cuh"

namespace sinter {

template <typename Config>
class FloatAttentionParts {
  static constexpr int kValueKeys = value_part_keys(Config::kValueWidth);

 public:
  static constexpr int of_keys = (Config::kWidth + kPartElements - 1) / kPartElements;
  static constexpr int of_values = kFloatTileKeys / kValueKeys;

  // Begins to load the first part of the tile that begins at key `begin`.
  SINTER_DEVICE FloatAttentionParts(const FloatAttentionBlock<Config>& block, const KeyRange& seen,
                                    int begin)
      : block_(block), seen_(seen) {
    load_part(begin, 0);
  }

  // The buffer that is being loaded, once all of it is there: valid until the next call.
  // Keys outside of those seen have any numbers. Begins to load part `next` of the tile that begins
  // at key `begin`. All threads of the block call it.
  SINTER_DEVICE const float* take(int begin, int next) {
    const float* taken = block_.buffer(buffer_);
    buffer_ ^= 1;
    cp_async_wait_group<0>();
    __syncthreads();  // the part is there, and the one before it is no longer needed
    load_part(begin, next);
    return taken;
  }

 private:
  // The parts of values follow the parts of keys; then come the next tile's parts.
  SINTER_DEVICE void load_part(int begin, int part) const {
    if (part == of_keys + of_values) {
      begin = after_gap<Config>(begin + kFloatTileKeys, seen_.low, kFloatTileKeys);
      part = 0;
    }
    if (part < of_keys) {
      const int first = part * kPartElements;
      load<kFloatTileKeys, kPartElements, kKeyStride, Config::kWidth>(
          block_.keys_from() + first, block_.key_stride(), begin, Config::kWidth - first);
    } else {
      load<kValueKeys, Config::kValueWidth, value_stride(Config::kValueWidth), Config::kValueWidth>(
          block_.values_from(), block_.value_stride(), begin + (part - of_keys) * kValueKeys,
          Config::kValueWidth);
    }
    cp_async_commit_group();
  }

  // Loads `keys` keys from `first` on: `elements` elements of each, of which `valid` are there, and
  // zeros after them. `stride`: from a key to the next in the buffer; `width`: of a whole head.
  template <int keys, int elements, int stride, int width>
  SINTER_DEVICE void load(const float* from, long long row_stride, int first, int valid) const {
    constexpr int chunks = (elements + 3) / 4, all = keys * chunks;
    float* const buffer = block_.buffer(buffer_);
#pragma unroll
    for (int begin = 0; begin < all; begin += Config::kThreads) {
      const int i = begin + static_cast<int>(threadIdx.x);
      const int key = i / chunks, element = i % chunks * 4;
      if ((all % Config::kThreads != 0 && i >= all) || !seen_.template has<Config>(first + key) ||
          element >= valid)
        continue;
      const float* source = from + (first + key) * row_stride + element;
      float* target = buffer + key * stride + element;
      if constexpr (Config::kAligned && width % 4 == 0) {
        cp_async(target, source, true);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) target[e] = element + e < valid ? source[e] : 0.0f;
      }
    }
  }

  const FloatAttentionBlock<Config>& block_;
  KeyRange seen_;
  int buffer_ = 0;  // that is being loaded
};

}  // namespace sinter
