// attention_split and attention_merge; ir/attention_order.h states their order of operations.
#pragma once

#include "ir/attention_order.h"
#include "sinter/vector.cuh"

namespace sinter {

// What a kernel's text fixes. `Element`: of q and the caches.
//   kHeads, kKvHeads, kTile (query heads of one block, all of one key head), kWidth, kValueWidth,
//   kSplits, kLanes (bit_ceil of the wider head's chunks), kAligned (chunks may be loaded whole),
//   kScale, kSoftcap (0: none), kWindow (0: none)

// Eight elements of a row of `width` from element 8 * lane on; zeros behind its end.
template <bool aligned, int width, typename T>
SINTER_DEVICE void load_head(float (&out)[8], const T* row, int lane) {
  if constexpr (aligned && width % 8 == 0) {
    if (8 * lane < width) return load_chunk(out, row + 8 * lane);
#pragma unroll
    for (int e = 0; e < 8; ++e) out[e] = 0.0f;
  } else {
#pragma unroll
    for (int e = 0; e < 8; ++e) out[e] = 8 * lane + e < width ? load(row + 8 * lane + e) : 0.0f;
  }
}

// A block: one token, kTile query heads of one key head, one split. Threads: kLanes lanes for each
// of the streams; in a stream lane c holds elements 8c .. 8c + 7 of a head. `parts` has the rows
// [token][head][split][kValueWidth + 2]; `shared` room for kAttentionStreams * (kValueWidth + 2) floats.
template <typename Config, typename T>
SINTER_DEVICE void attention_split(const T* q, long long q_stride, const T* keys, long long keys_stride,
                                   const T* values, long long values_stride, const int* first,
                                   const int* last, float* parts, float* shared) {
  constexpr int tile = Config::kTile, lanes = Config::kLanes, block = kAttentionBlock;
  constexpr int group = Config::kHeads / Config::kKvHeads, tiles = group / tile;
  constexpr unsigned all = 0xffffffffu;
  const int split = blockIdx.x % Config::kSplits;
  const int rest = blockIdx.x / Config::kSplits % (Config::kKvHeads * tiles);
  const long long token = blockIdx.x / (Config::kSplits * Config::kKvHeads * tiles);
  const int kv_head = rest / tiles, head0 = kv_head * group + rest % tiles * tile;
  const int stream = threadIdx.x / lanes, lane = threadIdx.x % lanes;

  const AttentionRange part =
      attention_part(attention_range(first[token], last[token], Config::kWindow), Config::kSplits, split);
  float query[tile][8], sum[tile][8], m[tile], l[tile];
#pragma unroll
  for (int h = 0; h < tile; ++h) {
    load_head<Config::kAligned, Config::kWidth>(query[h], q + token * q_stride + (head0 + h) * Config::kWidth, lane);
    m[h] = -math::infinity();
    l[h] = 0.0f;
#pragma unroll
    for (int e = 0; e < 8; ++e) sum[h][e] = 0.0f;
  }

  // All threads go round as often as the longest stream does: they exchange partial sums.
  const T* key_rows = keys + kv_head * Config::kWidth;
  const T* value_rows = values + kv_head * Config::kValueWidth;
  for (long long begin = 0; begin < part.count; begin += block * kAttentionStreams) {
    const long long left = part.count - begin - block * stream;  // keys of this block, if positive
    const long long row = part.low + begin + block * stream;
    float k[block][8], v[block][8];
#pragma unroll
    for (int u = 0; u < block; ++u) {
      const long long at = u < left ? row + u : part.low;  // a key that is there
      load_head<Config::kAligned, Config::kWidth>(k[u], key_rows + at * keys_stride, lane);
      load_head<Config::kAligned, Config::kValueWidth>(v[u], value_rows + at * values_stride, lane);
    }
#pragma unroll
    for (int h = 0; h < tile; ++h) {
      float score[block];
#pragma unroll
      for (int u = 0; u < block; ++u) {
        float dot = 0.0f;
#pragma unroll
        for (int e = 0; e < 8; ++e) dot = math::fma(query[h][e], k[u][e], dot);
#pragma unroll
        for (int stride = 1; stride < lanes; stride *= 2)
          dot = math::add(dot, __shfl_xor_sync(all, dot, stride));
        score[u] = attention_score(dot, Config::kScale, Config::kSoftcap);
      }
      if (left <= 0) continue;
      float largest = m[h];
#pragma unroll
      for (int u = 0; u < block; ++u)
        if (u < left) largest = math::maximum(largest, score[u]);
      const float scale = attention_weight(m[h], largest);
      m[h] = largest;
      l[h] = math::mul(l[h], scale);
#pragma unroll
      for (int e = 0; e < 8; ++e) sum[h][e] = math::mul(sum[h][e], scale);
#pragma unroll
      for (int u = 0; u < block; ++u) {
        if (u >= left) continue;
        const float p = attention_weight(score[u], largest);
        l[h] = math::add(l[h], p);
#pragma unroll
        for (int e = 0; e < 8; ++e) sum[h][e] = math::fma(p, v[u][e], sum[h][e]);
      }
    }
  }

  // The streams of one head at a time.
  constexpr int width = Config::kValueWidth, stored = width + 2;
#pragma unroll
  for (int h = 0; h < tile; ++h) {
    float* own = shared + stream * stored;
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (8 * lane + e < width && stream < kAttentionStreams) own[8 * lane + e] = sum[h][e];
    if (lane == 0 && stream < kAttentionStreams) {
      own[width] = m[h];
      own[width + 1] = l[h];
    }
    __syncthreads();
    float largest = shared[width];
#pragma unroll
    for (int j = 1; j < kAttentionStreams; ++j) largest = math::maximum(largest, shared[j * stored + width]);
    float* out = parts + ((token * Config::kHeads + head0 + h) * Config::kSplits + split) * stored;
    // Element `width` is the maximum; the sums of values and, behind it, of weights are joined alike.
    for (int i = threadIdx.x; i < stored; i += blockDim.x) {
      float total = 0.0f;
#pragma unroll
      for (int j = 0; j < kAttentionStreams; ++j)
        total = math::fma(attention_weight(shared[j * stored + width], largest), shared[j * stored + i], total);
      out[i] = i == width ? largest : total;
    }
    __syncthreads();
  }
}

// A block: one token and head. Threads walk the elements.
template <int splits, int width, typename T>
SINTER_DEVICE void attention_merge(const float* parts, T* out) {
  constexpr int stored = width + 2;
  const float* own = parts + static_cast<long long>(blockIdx.x) * splits * stored;
  float largest = own[width];
  for (int s = 1; s < splits; ++s) largest = math::maximum(largest, own[s * stored + width]);
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    float total = 0.0f, weight = 0.0f;
    for (int s = 0; s < splits; ++s) {
      const float scale = attention_weight(own[s * stored + width], largest);
      weight = math::fma(scale, own[s * stored + width + 1], weight);
      total = math::fma(scale, own[s * stored + i], total);
    }
    store(out + static_cast<long long>(blockIdx.x) * width + i, math::div(total, weight));
  }
}

}  // namespace sinter
