// The reduction order of the numerics contract on the device; ir/reduction_order.h states it.
//
// A row of V virtual lanes is spread over P threads, P a power of two <= V: thread t of the row
// simulates the lanes t, t + P, t + 2P, ... Rows are aligned to P threads in their block.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

// The end of a loop, not known to the compiler. NVRTC 13.0 may count a loop of constant length from
// a negative start and yet compare the count with the shifted end as unsigned: such a loop ends at
// once.
template <typename Index>
SINTER_DEVICE Index hidden(Index end) {
#ifdef __CUDACC_RTC__
  if constexpr (sizeof(Index) == 8)
    asm("" : "+l"(end));
  else
    asm("" : "+r"(end));
#endif
  return end;
}

// What is reduced. Shared memory holds floats; a whole number has its bits in one.
struct FloatReduction {
  using T = float;
  static SINTER_DEVICE float to_float(float x) { return x; }
  static SINTER_DEVICE float from_float(float x) { return x; }
};
struct IntReduction {
  using T = int;
  static SINTER_DEVICE float to_float(int x) { return math::bits_float(static_cast<math::u32>(x)); }
  static SINTER_DEVICE int from_float(float x) { return static_cast<int>(math::float_bits(x)); }
};

struct Sum : FloatReduction {
  static SINTER_DEVICE float identity() { return 0.0f; }
  static SINTER_DEVICE float combine(float a, float b) { return math::add(a, b); }
};

struct Max : FloatReduction {
  static SINTER_DEVICE float identity() { return -math::infinity(); }
  static SINTER_DEVICE float combine(float a, float b) { return math::maximum(a, b); }
};

struct IntSum : IntReduction {
  static SINTER_DEVICE int identity() { return 0; }
  static SINTER_DEVICE int combine(int a, int b) { return math::add(a, b); }
};

struct IntMax : IntReduction {
  static SINTER_DEVICE int identity() { return -2147483647 - 1; }
  static SINTER_DEVICE int combine(int a, int b) { return math::maximum(a, b); }
};

// The lanes that one thread simulates.
template <typename Op, int count>
struct Lanes {
  using T = typename Op::T;
  T value[count];

  SINTER_DEVICE Lanes() {
#pragma unroll
    for (int k = 0; k < count; ++k) value[k] = Op::identity();
  }
  SINTER_DEVICE void take(int k, T x) { value[k] = Op::combine(value[k], x); }
};

// The row's result, in all of its threads. Every thread of the block calls it. `shared` holds
// `count` floats for each warp of the block (unused if P <= 32) and serves one call only.
template <int P, typename Op, int count>
SINTER_DEVICE typename Op::T reduce_row(Lanes<Op, count>& lanes, float* shared) {
  constexpr unsigned all = 0xffffffffu;
  constexpr int width = P < 32 ? P : 32;
#pragma unroll
  for (int k = 0; k < count; ++k)
#pragma unroll
    for (int stride = 1; stride < width; stride *= 2)
      lanes.value[k] = Op::combine(lanes.value[k], __shfl_xor_sync(all, lanes.value[k], stride));
  if constexpr (P > 32) {
    constexpr int warps = P / 32;  // of the row
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) {
#pragma unroll
      for (int k = 0; k < count; ++k) shared[warp * count + k] = Op::to_float(lanes.value[k]);
    }
    __syncthreads();
    const int peer = warp / warps * warps + lane % warps;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      lanes.value[k] = Op::from_float(shared[peer * count + k]);
#pragma unroll
      for (int stride = 1; stride < warps; stride *= 2)
        lanes.value[k] = Op::combine(lanes.value[k], __shfl_xor_sync(all, lanes.value[k], stride));
    }
  }
  // Lane k holds the same as all lanes congruent to k mod P would.
#pragma unroll
  for (int stride = 1; stride < count; stride *= 2)
#pragma unroll
    for (int k = 0; k < count; k += 2 * stride)
      lanes.value[k] = Op::combine(lanes.value[k], lanes.value[k + stride]);
  return lanes.value[0];
}

}  // namespace sinter
