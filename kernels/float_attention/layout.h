// The shared memory of float_attention: queries, two buffers for parts of keys and values, and a
// tile of weights, and which keys each token and each warp sees; the same text on host and device.
// Sizes are in floats.
#pragma once

#include "kernels/float_attention/order.h"

namespace sinter {

constexpr int kWarpRows = 16;      // tokens of a warp
constexpr int kPartElements = 32;  // of a head's keys that are in a buffer at a time

/// Lanes read 16 bytes of neighbouring rows without conflicts if a row's length is an odd multiple
/// of 4.
SINTER_DEVICE constexpr int query_stride(int width) { return 4 * ((width + 3) / 4 | 1); }
constexpr int kKeyStride = kPartElements + 4;
constexpr int kBufferFloats = kFloatTileKeys * kKeyStride;

/// A lane has 4 of each 32 elements of a result.
SINTER_DEVICE constexpr int value_groups(int value_width) { return (value_width + 31) / 32; }
SINTER_DEVICE constexpr int value_stride(int value_width) { return 32 * value_groups(value_width); }
/// Keys whose values are in a buffer at a time: a power of two.
SINTER_DEVICE constexpr int value_part_keys(int value_width) {
  int keys = kFloatTileKeys;
  while (keys * value_stride(value_width) > kBufferFloats) keys /= 2;
  return keys;
}

SINTER_DEVICE constexpr int float_attention_floats(int rows, int width) {
  return rows * query_stride(width) + 2 * kBufferFloats + rows * kFloatTileKeys + 2 * rows +
         4 * (rows / kWarpRows);
}

}  // namespace sinter
