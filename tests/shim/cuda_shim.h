// CUDA C++ as far as kernel text uses it, in plain C++ for one CPU thread that plays all threads of
// a block, or of a cluster's blocks, in turn. Compiled ahead of kernel text; `__shared__`
// declarations are rewritten by shim_source.cpp, because their storage belongs to the block.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "shim/shim_interface.h"

#define SINTER_SHIM 1
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __grid_constant__
#define __isShared(address) true
#define __builtin_assume(condition) static_cast<void>(condition)
// Functions of the library stay functions: kernel text is compiled without optimization, and a copy
// at every call, each with sanitizers' checks of its own, takes the compiler three times as long.
#define SINTER_DEVICE inline

// The module's own pointer to its runner; set once, before the first launch.
static const sinter_shim::Calls* sinter_shim_calls;

#define threadIdx (sinter_shim_calls->context->thread)
#define blockIdx (sinter_shim_calls->context->block)
#define blockDim (sinter_shim_calls->context->block_dim)
#define gridDim (sinter_shim_calls->context->grid_dim)
static constexpr int warpSize = 32;

// Vector types: aligned to their size, as loads of them demand.
#define SINTER_SHIM_VECTOR(scalar, name)                                         \
  struct alignas(2 * sizeof(scalar)) name##2 {                                   \
    scalar x, y;                                                                 \
  };                                                                             \
  struct alignas(4 * sizeof(scalar)) name##4 {                                   \
    scalar x, y, z, w;                                                           \
  };                                                                             \
  static inline name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }    \
  static inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { \
    return {x, y, z, w};                                                         \
  }
SINTER_SHIM_VECTOR(float, float)
SINTER_SHIM_VECTOR(int, int)
SINTER_SHIM_VECTOR(unsigned, uint)
SINTER_SHIM_VECTOR(short, short)
SINTER_SHIM_VECTOR(unsigned short, ushort)
SINTER_SHIM_VECTOR(unsigned char, uchar)
#undef SINTER_SHIM_VECTOR

// Barriers and exchanges remember where they stand: a default argument is evaluated at the call.
#define SINTER_SHIM_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

static inline void __syncthreads(SINTER_SHIM_SITE) { sinter_shim_calls->barrier({file, line}); }
static inline void __syncwarp(unsigned mask = 0xffffffffu, SINTER_SHIM_SITE) {
  sinter_shim_calls->exchange(sinter_shim::ExchangeKind::sync, mask, 0, 0, {file, line});
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}

namespace sinter_shim {

static inline unsigned lane() {
  const Context& c = *sinter_shim_calls->context;
  return (c.thread.x + c.block_dim.x * (c.thread.y + c.block_dim.y * c.thread.z)) % 32u;
}

template <typename T>
T shuffle(unsigned mask, T value, unsigned source, const char* file, int line) {
  static_assert(sizeof(T) <= sizeof(unsigned long long), "shuffles move at most 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = sinter_shim_calls->exchange(ExchangeKind::shuffle, mask, bits, source, {file, line});
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

// An instruction of all lanes of a warp, with the address of the lane's operands.
static inline void whole_warp(ExchangeKind kind, const void* operands, const char* file, int line) {
  sinter_shim_calls->exchange(kind, 0xffffffffu, reinterpret_cast<unsigned long long>(operands), 0,
                              {file, line});
}

// Calls a kernel with arguments given by address, as a launch does.
template <typename... P>
void call_kernel(void (*kernel)(P...), void** arguments) {
  // Braces evaluate from left to right, so that each parameter takes the next argument.
  struct Call {
    Call(void (*kernel)(P...), P... parameters) { kernel(parameters...); }
  };
  Call{kernel, *static_cast<P*>(*arguments++)...};
}
template <typename... P>
constexpr int count_parameters(void (*)(P...)) {
  return sizeof...(P);
}

}  // namespace sinter_shim

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, SINTER_SHIM_SITE) {
  const unsigned w = static_cast<unsigned>(width), first = sinter_shim::lane() & ~(w - 1);
  return sinter_shim::shuffle(mask, value, first + (static_cast<unsigned>(source) & (w - 1)), file,
                              line);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, SINTER_SHIM_SITE) {
  const unsigned lane = sinter_shim::lane(), w = static_cast<unsigned>(width);
  const unsigned source = lane ^ static_cast<unsigned>(lane_mask);
  return sinter_shim::shuffle(mask, value, source < (lane & ~(w - 1)) + w ? source : lane, file,
                              line);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SINTER_SHIM_SITE) {
  const unsigned lane = sinter_shim::lane(), w = static_cast<unsigned>(width);
  const bool inside = (lane & (w - 1)) + delta < w;
  return sinter_shim::shuffle(mask, value, inside ? lane + delta : lane, file, line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SINTER_SHIM_SITE) {
  const unsigned lane = sinter_shim::lane(), w = static_cast<unsigned>(width);
  const bool inside = (lane & (w - 1)) >= delta;
  return sinter_shim::shuffle(mask, value, inside ? lane - delta : lane, file, line);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, SINTER_SHIM_SITE) {
  return static_cast<unsigned>(sinter_shim_calls->exchange(sinter_shim::ExchangeKind::ballot, mask,
                                                           predicate != 0, 0, {file, line}));
}
static inline int __any_sync(unsigned mask, int predicate, SINTER_SHIM_SITE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, SINTER_SHIM_SITE) {
  return __ballot_sync(mask, !predicate, file, line) == 0;
}
static inline unsigned __activemask() { return 1u << sinter_shim::lane(); }

// Scalar intrinsics.
template <typename To, typename From>
static inline To sinter_shim_bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
static inline int __float_as_int(float x) { return sinter_shim_bit_cast<int>(x); }
static inline unsigned __float_as_uint(float x) { return sinter_shim_bit_cast<unsigned>(x); }
static inline float __int_as_float(int x) { return sinter_shim_bit_cast<float>(x); }
static inline float __uint_as_float(unsigned x) { return sinter_shim_bit_cast<float>(x); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __float2int_rn(float x) { return static_cast<int>(__builtin_rintf(x)); }
static inline float __int2float_rn(int x) { return static_cast<float>(x); }
// Threads run one at a time.
template <typename T>
static inline T atomicAdd(T* address, T value) {
  const T before = *address;
  *address += value;
  return before;
}
template <typename T>
static inline T __ldg(const T* address) {
  return *address;
}
template <typename T>
static inline T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
static inline T max(T a, T b) {
  return a < b ? b : a;
}
