// The reduction order of the numerics contract on the device; ir/reduction_order.h states it.
//
// A row of V virtual lanes is spread over P threads, P a power of two <= V: thread t of the row
// simulates the lanes t, t + P, t + 2P, ... Rows are aligned to P threads in their block.
#pragma once

#include "ir/scalar_math.h"
#include "kernels/isa/cluster.cuh"
#include "kernels/isa/opaque.cuh"

namespace sinter {

// The end of a loop, not known to the compiler. NVRTC 13.0 may count a loop of constant length from
// a negative start and yet compare the count with the shifted end as unsigned: such a loop ends at
// once.
template <typename Index>
SINTER_DEVICE Index hidden(Index end) {
  make_opaque(end);
  return end;
}

// The kinds of reduction. Shared memory holds floats; an integer has its bits in one. any_order:
// the result does not depend on the order, which is then the one with the fewest steps.
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
  static constexpr bool any_order = false;
  static SINTER_DEVICE float identity() { return 0.0f; }
  static SINTER_DEVICE float combine(float a, float b) { return math::add(a, b); }
};

struct Max : FloatReduction {
  static constexpr bool any_order = true;
  static SINTER_DEVICE float identity() { return -math::infinity(); }
  static SINTER_DEVICE float combine(float a, float b) { return math::maximum(a, b); }
};

struct IntSum : IntReduction {
  static constexpr bool any_order = true;
  static SINTER_DEVICE int identity() { return 0; }
  static SINTER_DEVICE int combine(int a, int b) { return math::add(a, b); }
};

struct IntMax : IntReduction {
  static constexpr bool any_order = true;
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

// The greatest of a thread's elements that are values of bf16, two at a time: the halves of a word.
// Which of them meet does not matter, and a NaN is the one that maximum() gives when they do.
struct PairsOfMax {
  unsigned word = 0xff80ff80u;  // -infinity

  SINTER_DEVICE static unsigned halves(float low, float high) {
    return math::float_bits(low) >> 16 | (math::float_bits(high) & 0xffff0000u);
  }
  SINTER_DEVICE static float low(unsigned pair) { return math::bits_float(pair << 16); }
  SINTER_DEVICE static float high(unsigned pair) { return math::bits_float(pair & 0xffff0000u); }
  SINTER_DEVICE static unsigned combine(unsigned a, unsigned b) {
#if SINTER_HAS_BF16_ARITHMETIC
    asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
#else
    return halves(math::maximum(low(a), low(b)), math::maximum(high(a), high(b)));
#endif
  }
  SINTER_DEVICE void take(const float (&x)[8]) {
    word = combine(word, combine(combine(halves(x[0], x[1]), halves(x[2], x[3])),
                                 combine(halves(x[4], x[5]), halves(x[6], x[7]))));
  }
  SINTER_DEVICE Lanes<Max, 1> lanes() const {
    Lanes<Max, 1> result;
    result.take(0, low(word));
    result.take(0, high(word));
    return result;
  }
};

// Combines the values of `count` numbers in `width` neighbouring threads of a warp, both powers of
// two. At each stride a thread keeps its numbers whose next bit equals the thread's bit, and gives
// the others to its neighbour: fewer exchanges than for all numbers, with the same operands.
// Afterwards value[j] of thread t holds number t % width + width * j, or number t % count.
template <int width, int count, typename Op, int lanes>
SINTER_DEVICE void combine_threads(Lanes<Op, lanes>& numbers) {
  constexpr unsigned all = 0xffffffffu;
  typename Op::T(&value)[lanes] = numbers.value;
#pragma unroll
  for (int stride = 1, left = count; stride < width; stride *= 2) {
    if (left == 1) {
      value[0] = Op::combine(value[0], __shfl_xor_sync(all, value[0], stride));
      continue;
    }
    left /= 2;
    const bool odd = (static_cast<int>(threadIdx.x) & stride) != 0;
#pragma unroll
    for (int k = 0; k < left; ++k) {
      const typename Op::T low = value[2 * k], high = value[2 * k + 1];
      value[k] = Op::combine(odd ? high : low, __shfl_xor_sync(all, odd ? low : high, stride));
    }
  }
}

// Combines the first `count` values of a thread: neighbours first.
template <int count, typename Op, int lanes>
SINTER_DEVICE void combine_own(Lanes<Op, lanes>& numbers) {
#pragma unroll
  for (int stride = 1; stride < count; stride *= 2)
#pragma unroll
    for (int k = 0; k < count; k += 2 * stride)
      numbers.value[k] = Op::combine(numbers.value[k], numbers.value[k + stride]);
}

// The row's result, in all of its threads. Every thread of the block calls it. `shared` holds
// `count` floats for each warp of the rows that the block has (unused if P <= 32) and serves one
// call only. A row may have the `blocks` blocks of a cluster: the first P / blocks threads are the
// first block's.
template <int P, int blocks = 1, typename Op, int count>
SINTER_DEVICE typename Op::T reduce_row(Lanes<Op, count>& lanes, float* shared) {
  constexpr unsigned all = 0xffffffffu;
  constexpr int width = P < 32 ? P : 32;
  constexpr int numbers = Op::any_order ? 1 : count;
  if constexpr (Op::any_order) combine_own<count>(lanes);
  combine_threads<width, numbers>(lanes);
  typename Op::T(&value)[count] = lanes.value;
  if constexpr (P > 32) {
    constexpr int warps = P / 32;  // of the row
    static_assert(warps * numbers <= 32, "a warp has a thread for each number of each warp");
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int first = blocks > 1 ? 0 : warp / warps * warps;  // of the row
    if constexpr (blocks > 1) {
      const int rank = static_cast<int>(blockIdx.x) % blocks;
      if (lane < numbers) {
        float* own = shared + (rank * (warps / blocks) + warp) * numbers + lane;
#pragma unroll
        for (int to = 0; to < blocks; ++to)
          st_shared_cluster<blocks>(own, to, Op::to_float(value[0]));
      }
      barrier_cluster_arrive();
      barrier_cluster_wait();
    } else {
      if (lane < numbers) shared[warp * numbers + lane] = Op::to_float(value[0]);
      __syncthreads();
    }
    value[0] = Op::from_float(shared[first * numbers + lane % (warps * numbers)]);
#pragma unroll
    for (int stride = numbers; stride < warps * numbers; stride *= 2)
      value[0] = Op::combine(value[0], __shfl_xor_sync(all, value[0], stride));
  }
  constexpr int spread = numbers < width ? numbers : width;  // over the threads
#pragma unroll
  for (int stride = 1; stride < spread; stride *= 2)
#pragma unroll
    for (int k = 0; k < numbers / spread; ++k)
      value[k] = Op::combine(value[k], __shfl_xor_sync(all, value[k], stride));
  combine_own<numbers / spread>(lanes);
  return value[0];
}

}  // namespace sinter
