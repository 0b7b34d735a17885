// A lane's work in float_attention: the online softmax and the weighted sums of its rows.
//
// A lane has 4 rows of the warp's 16, row(i); of a tile's keys column() + 8 j; of a result's
// elements 32 g + 4 column() + 0 .. 3. Lanes that differ in bit 0 of their number have the same
// column, those that differ in bit 1 the same row: a warp's read of 16 bytes a lane takes two
// passes, not four.
#pragma once

#include "kernels/float_attention/attention_block.cuh"
#include "kernels/isa/opaque.cuh"

namespace sinter {

constexpr int kLaneRows = 4, kLaneKeys = 8;

template <typename Config>
class FloatAttentionLane {
  using Mask = typename Config::Mask;
  static constexpr unsigned kAll = 0xffffffffu;
  static constexpr int kGroups = value_groups(Config::kValueWidth);
  static constexpr float kNoWeight = -1.0f;  // of a key that the row does not see

 public:
  SINTER_DEVICE explicit FloatAttentionLane(const FloatAttentionBlock<Config>& block)
      : block_(block) {
    KeyRange all = {0, 0x7fffffff}, any = {0x7fffffff, 0};
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      const KeyRange seen = block.seen_by(row(i));
      if (column() == 0) block.seen()[row(i)] = seen;
      all = {all.low > seen.low ? all.low : seen.low, all.end < seen.end ? all.end : seen.end};
      if (seen.low < seen.end)
        any = {any.low < seen.low ? any.low : seen.low, any.end > seen.end ? any.end : seen.end};
    }
#pragma unroll
    for (int stride = 1; stride <= 4; stride *= 4) {  // the lanes of other rows
      const KeyRange other_all = exchange(all, stride), other = exchange(any, stride);
      all = {all.low > other_all.low ? all.low : other_all.low,
             all.end < other_all.end ? all.end : other_all.end};
      any = {any.low < other.low ? any.low : other.low, any.end > other.end ? any.end : other.end};
    }
    if (thread_ % 32 == 0) {
      ranges()[0] = all;
      ranges()[1] = any;
    }
    __syncwarp();  // the ranges of the warp and of its rows are there
  }

  // A row of the warp may see a key of the tile that begins at key `begin`.
  SINTER_DEVICE bool sees_tile(int begin) const {
    const KeyRange any = ranges()[1];
    return (begin < any.end && begin + kFloatTileKeys > any.low) ||
           is_of_sink<Config>(begin, any.low);
  }

  // Adds to dot products the elements of part `part` of the keys.
  SINTER_DEVICE void multiply_keys(float (&dots)[kLaneRows][kLaneKeys], const float* keys,
                                   int part) const {
    constexpr int chunks = (Config::kWidth + 3) / 4, most = kPartElements / 4;
    const float* q = block_.queries() + row(0) * query_stride(Config::kWidth);
    q += part * kPartElements;
    keys += column() * kKeyStride;
    const int here = chunks % most == 0 || part < chunks / most ? most : chunks % most;
#pragma unroll 1
    for (int chunk = 0; chunk < here; ++chunk) {
      float a[kLaneRows][4];
#pragma unroll
      for (int i = 0; i < kLaneRows; ++i)
        load_quad(a[i], q + 4 * i * query_stride(Config::kWidth) + 4 * chunk);
#pragma unroll
      for (int j = 0; j < kLaneKeys; ++j) {
        float b[4];
        load_quad(b, keys + 8 * j * kKeyStride + 4 * chunk);
#pragma unroll
        for (int e = 0; e < 4; ++e)
#pragma unroll
          for (int i = 0; i < kLaneRows; ++i) dots[i][j] = math::fma(a[i][e], b[e], dots[i][j]);
      }
    }
  }

  // Leaves the weights of a tile's keys in shared memory, and scales what was summed.
  SINTER_DEVICE void weigh(float (&scores)[kLaneRows][kLaneKeys], int begin) {
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i)
#pragma unroll
      for (int j = 0; j < kLaneKeys; ++j)
        scores[i][j] = attention_score(scores[i][j], Config::kScale, Config::kSoftcap);
    const unsigned hidden = sees_whole_tile(begin) ? 0u : hide_keys(scores, begin);
    grow(scores);
    float* const weights = warp_weights() + kWarpRows * column();
#pragma unroll
    for (int j = 0; j < kLaneKeys; ++j) {
      float weight[kLaneRows];
#pragma unroll
      for (int i = 0; i < kLaneRows; ++i) {
        weight[i] = attention_weight(scores[i][j], largest_[i]);
        weights_[i] = math::add(weights_[i], weight[i]);
        if (hidden >> (i * kLaneKeys + j) & 1) weight[i] = kNoWeight;
      }
      store_quad(weights + kWarpRows * 8 * j, weight);
    }
  }

  // Adds the values of part `part` of the keys of the tile that begins at key `begin`, with the
  // weights that weigh() has left.
  SINTER_DEVICE void add_values(const float* values, int part, int begin) {
    if (sees_whole_tile(begin))
      add_values<false>(values, part);
    else
      add_values<true>(values, part);
  }

  template <typename Result>
  SINTER_DEVICE void store(const Result& out) {
    make_opaque(thread_);  // places of rows are computed anew: they would stay in registers
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      float weights = weights_[i];
      weights = math::add(weights, __shfl_xor_sync(kAll, weights, 2));
      weights = math::add(weights, __shfl_xor_sync(kAll, weights, 8));
      weights = math::add(weights, __shfl_xor_sync(kAll, weights, 16));
#pragma unroll
      for (int e = 0; e < 4 * kGroups; ++e)
        sums_[i][e] = attention_result(sums_[i][e], weights, Config::kEmptyZero);
    }
    // One of two lanes with neighbouring elements stores 8 elements of two rows, the other of the
    // other two.
    const bool odd = column() % 2 != 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
#pragma unroll
      for (int i = 0; i < kLaneRows / 2; ++i) {
        float chunk[8];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float low = sums_[i][4 * g + e], high = sums_[i + kLaneRows / 2][4 * g + e];
          const float other = __shfl_xor_sync(kAll, odd ? low : high, 2);
          chunk[e] = odd ? other : low;
          chunk[4 + e] = odd ? high : other;
        }
        block_.store(out, row(odd ? i + kLaneRows / 2 : i), 32 * g + 4 * (column() & ~1), chunk);
      }
  }

 private:
  SINTER_DEVICE int warp_row0() const { return static_cast<int>(thread_ / 32) * kWarpRows; }
  SINTER_DEVICE int first_row() const {
    return static_cast<int>(thread_ % 2 + thread_ / 4 % 2 * 2);
  }
  SINTER_DEVICE int column() const {
    return static_cast<int>(thread_ / 2 % 2 + thread_ % 32 / 8 * 2);
  }
  // The number of a lane's row in the block.
  SINTER_DEVICE int row(int i) const { return warp_row0() + first_row() + 4 * i; }

  SINTER_DEVICE static KeyRange exchange(const KeyRange& range, int stride) {
    return {__shfl_xor_sync(kAll, range.low, stride), __shfl_xor_sync(kAll, range.end, stride)};
  }

  // The keys that all rows of the warp see, and those that any sees.
  SINTER_DEVICE KeyRange* ranges() const {
    return block_.seen() + Config::kRows + 2 * (thread_ / 32);
  }
  // All rows of the warp see all keys of a tile.
  SINTER_DEVICE bool sees_whole_tile(int begin) const {
    const KeyRange all = ranges()[0];
    return !Mask::kIsThere && begin >= all.low && begin + kFloatTileKeys <= all.end;
  }
  // The weights of the warp's rows for key 0 of a tile, from this lane's first row on.
  SINTER_DEVICE float* warp_weights() const {
    return block_.weights() + warp_row0() * kFloatTileKeys + kLaneRows * first_row();
  }

  // Adds the mask, and sets scores of keys that a row does not see to -inf. Bit i * kLaneKeys + j
  // is set for those.
  SINTER_DEVICE unsigned hide_keys(float (&scores)[kLaneRows][kLaneKeys], int begin) const {
    unsigned hidden = 0;
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      const KeyRange range = block_.seen()[row(i)];
      [[maybe_unused]] const auto masks = block_.mask_of(row(i));
#pragma unroll
      for (int j = 0; j < kLaneKeys; ++j) {
        const int key = begin + column() + 8 * j;
        bool seen = range.template has<Config>(key);
        if constexpr (Mask::kIsThere) {
          if (seen) {
            const auto mask = masks[key];
            scores[i][j] = attention_score(scores[i][j], mask);
            seen = attention_sees(mask);
          }
        }
        if (seen) continue;
        scores[i][j] = -math::infinity();
        hidden |= 1u << (i * kLaneKeys + j);
      }
    }
    return hidden;
  }

  // m grows to the largest score.
  SINTER_DEVICE void grow(const float (&scores)[kLaneRows][kLaneKeys]) {
    float largest[kLaneRows];
    bool grows = false;
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      float& x = largest[i] = scores[i][0];
#pragma unroll
      for (int j = 1; j < kLaneKeys; ++j) x = math::maximum(x, scores[i][j]);
      x = math::maximum(x, __shfl_xor_sync(kAll, x, 2));
      x = math::maximum(x, __shfl_xor_sync(kAll, x, 8));
      x = math::maximum(x, __shfl_xor_sync(kAll, x, 16));
      x = math::maximum(x, largest_[i]);
      grows = grows || x != largest_[i];
    }
    if (!__any_sync(kAll, grows)) return;
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      const float by = attention_growth(largest_[i], largest[i]);
      largest_[i] = largest[i];
      weights_[i] = math::mul(weights_[i], by);
#pragma unroll
      for (float& sum : sums_[i]) sum = math::mul(sum, by);
    }
  }

  // `hides`: some weights are kNoWeight.
  template <bool hides>
  SINTER_DEVICE void add_values(const float* values, int part) {
    constexpr int keys = value_part_keys(Config::kValueWidth);
    const float* weights = warp_weights() + part * keys * kWarpRows;
    values += 4 * column();
#pragma unroll 4
    for (int key = 0; key < keys; ++key) {
      float weight[kLaneRows];
      load_quad(weight, weights + kWarpRows * key);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        float value[4];
        load_quad(value, values + key * value_stride(Config::kValueWidth) + 32 * g);
#pragma unroll
        for (int i = 0; i < kLaneRows; ++i) {
          if (hides && weight[i] < 0.0f) continue;
#pragma unroll
          for (int e = 0; e < 4; ++e)
            sums_[i][4 * g + e] = math::fma(weight[i], value[e], sums_[i][4 * g + e]);
        }
      }
    }
  }

  const FloatAttentionBlock<Config>& block_;
  unsigned thread_ = threadIdx.x;
  float largest_[kLaneRows] = {-math::infinity(), -math::infinity(), -math::infinity(),
                               -math::infinity()};
  float weights_[kLaneRows] = {};
  float sums_[kLaneRows][4 * kGroups] = {};
};

}  // namespace sinter
