// Scalar arithmetic of the numerics contract: one text for host and device, the same bits on both.
//
// Everything here is built from IEEE single precision +, -, *, /, sqrt and fused multiply-add, from
// integer operations and, in pow and in the range reduction of sin and cos, from double operations
// of the same kinds; so the results are equal wherever the compiler neither contracts nor flushes:
// NVRTC with --fmad=false --ftz=false --prec-div=true --prec-sqrt=true, the host with
// -ffp-contract=off. Every function is within 2 ulp for all 2^32 arguments
// (tests/ir/scalar_math_test.cpp lists the measured maxima). A NaN result has no particular
// payload.
//
// One file that includes nothing: NVRTC compiles it as is. The polynomials are weighted minimax
// fits, their coefficients rounded one at a time with the others fitted anew.
#pragma once

#ifdef __CUDACC_RTC__
#define SINTER_DEVICE __device__ __forceinline__
#elif !defined(SINTER_DEVICE)
#define SINTER_DEVICE __attribute__((always_inline)) inline
#endif

namespace sinter {
namespace math {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

// Bits.

SINTER_DEVICE u32 float_bits(float x) {
#ifdef __CUDACC_RTC__
  return __float_as_uint(x);
#else
  return __builtin_bit_cast(u32, x);
#endif
}

SINTER_DEVICE float bits_float(u32 bits) {
#ifdef __CUDACC_RTC__
  return __uint_as_float(bits);
#else
  return __builtin_bit_cast(float, bits);
#endif
}

/// The constant -0, hidden from NVRTC's optimizer, which takes `c ? -1.0f : -0.0f` for the signed
/// integer value of c: +0.
SINTER_DEVICE float minus_zero() {
#ifdef __CUDACC_RTC__
  float zero;
  asm("mov.b32 %0, 0x80000000;" : "=f"(zero));
  return zero;
#else
  return -0.0f;
#endif
}
SINTER_DEVICE float infinity() { return bits_float(0x7f800000u); }
SINTER_DEVICE float nan() { return bits_float(0x7fffffffu); }
SINTER_DEVICE double bits_double(u64 bits) {
#ifdef __CUDACC_RTC__
  return __longlong_as_double(static_cast<long long>(bits));
#else
  return __builtin_bit_cast(double, bits);
#endif
}
SINTER_DEVICE u64 double_bits(double x) {
#ifdef __CUDACC_RTC__
  return static_cast<u64>(__double_as_longlong(x));
#else
  return __builtin_bit_cast(u64, x);
#endif
}

SINTER_DEVICE float copy_sign(float magnitude, float sign) {
#ifdef __CUDACC_RTC__
  u32 bits;  // the compiler masks both operands: two instructions
  asm("lop3.b32 %0, %1, %2, 0x7fffffff, 0xe4;"
      : "=r"(bits)
      : "r"(float_bits(magnitude)), "r"(float_bits(sign)));
  return bits_float(bits);
#else
  return bits_float((float_bits(magnitude) & 0x7fffffffu) | (float_bits(sign) & 0x80000000u));
#endif
}

// Storage types. Rounding is to nearest, ties to even; subnormals are kept.

SINTER_DEVICE float f16_to_float(u16 h) {
#ifdef __CUDACC_RTC__
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
#else
  // As the bits of a float the magnitude is too small by 2^112, also where h is subnormal.
  const u32 magnitude = (h & 0x7fffu) << 13;
  u32 bits = float_bits(bits_float(magnitude) * 0x1p112f);
  if (magnitude >= 0x0f800000u) bits = magnitude > 0x0f800000u ? 0x7fffffffu : 0x7f800000u;
  return bits_float(bits | (h & 0x8000u) << 16);
#endif
}

SINTER_DEVICE u16 float_to_f16(float x) {
#ifdef __CUDACC_RTC__
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  const u32 magnitude = float_bits(x) & 0x7fffffffu;
  const u32 sign = (float_bits(x) ^ magnitude) >> 16;
  // A float in [0.5, 1) has the last place of a subnormal f16: the addition rounds.
  const u32 subnormal = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
  const u32 normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  u32 h = magnitude < 0x38800000u ? subnormal : normal;
  if (magnitude >= 0x477ff000u) h = 0x7c00u;  // 65520, the first value that rounds to infinity
  if (magnitude > 0x7f800000u) return 0x7fffu;
  return static_cast<u16>(h | sign);
#endif
}

SINTER_DEVICE float bf16_to_float(u16 h) { return bits_float(static_cast<u32>(h) << 16); }

SINTER_DEVICE u16 float_to_bf16(float x) {
#if SINTER_HAS_BF16_ARITHMETIC
  u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  const u32 bits = float_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return static_cast<u16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}

// i32 to a float type, rounded once. An f16 is infinite long before a float is inexact. To bf16 a
// float could round to a tie; so what a bf16 cannot keep is first gathered in one sticky bit.
SINTER_DEVICE float i32_to_float(int x) { return static_cast<float>(x); }
SINTER_DEVICE u16 i32_to_f16(int x) { return float_to_f16(static_cast<float>(x)); }
SINTER_DEVICE u16 i32_to_bf16(int x) {
  u32 magnitude = x < 0 ? 0u - static_cast<u32>(x) : static_cast<u32>(x);
  if (magnitude >= 1u << 24)
    magnitude = (magnitude & ~0xffu) | ((magnitude & 0xffu) != 0 ? 0x100u : 0u);
  const float rounded = static_cast<float>(magnitude);
  return float_to_bf16(x < 0 ? -rounded : rounded);
}

// The same of i64. A number that no float is first becomes the float next to it towards zero, its
// last bit set: a bf16 is then rounded as from the number itself.
SINTER_DEVICE float i64_to_float(i64 x) { return static_cast<float>(x); }
SINTER_DEVICE u16 i64_to_f16(i64 x) { return float_to_f16(static_cast<float>(x)); }
SINTER_DEVICE u16 i64_to_bf16(i64 x) {
  const u64 magnitude = x < 0 ? 0ull - static_cast<u64>(x) : static_cast<u64>(x);
  u32 bits = float_bits(static_cast<float>(magnitude));
  const u64 back = static_cast<u64>(bits_float(bits));  // at most 2^63
  if (back > magnitude) --bits;
  if (back != magnitude) bits |= 1u;
  return float_to_bf16(x < 0 ? -bits_float(bits) : bits_float(bits));
}

// Float to integer: towards zero; the nearest number of the type where there is none, 0 for NaN.
SINTER_DEVICE int float_to_i32(float x) {
  if (x >= 0x1p31f) return 2147483647;
  if (x >= -0x1p31f) return static_cast<int>(x);
  return x != x ? 0 : -2147483647 - 1;
}
SINTER_DEVICE i64 float_to_i64(float x) {
  if (x >= 0x1p63f) return 9223372036854775807ll;
  if (x >= -0x1p63f) return static_cast<i64>(x);
  return x != x ? 0 : -9223372036854775807ll - 1;
}
// The nearest i32.
SINTER_DEVICE int i64_to_i32(i64 x) {
  if (x > 2147483647ll) return 2147483647;
  return x < -2147483647ll - 1 ? -2147483647 - 1 : static_cast<int>(x);
}

// Arithmetic: the functions that the formulas of ops.def name. Integers wrap around.

SINTER_DEVICE float fma(float a, float b, float c) {
#ifdef __CUDACC_RTC__
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

SINTER_DEVICE float sqrt(float a) {
#ifdef __CUDACC_RTC__
  return __fsqrt_rn(a);
#else
  return __builtin_sqrtf(a);
#endif
}

SINTER_DEVICE float neg(float a) { return bits_float(float_bits(a) ^ 0x80000000u); }
SINTER_DEVICE float abs(float a) { return bits_float(float_bits(a) & 0x7fffffffu); }
SINTER_DEVICE float add(float a, float b) { return a + b; }
SINTER_DEVICE float sub(float a, float b) { return a - b; }
SINTER_DEVICE float mul(float a, float b) { return a * b; }
SINTER_DEVICE float div(float a, float b) { return a / b; }

/// Grows with x: -0 counts as +0, and NaN as larger than every number. 0 is the key of no x.
SINTER_DEVICE u32 order_key(float x) {
  if (x != x) return 0xffffffffu;
  const u32 bits = float_bits(add(x, 0.0f));
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

SINTER_DEVICE double fma(double a, double b, double c) {
#ifdef __CUDACC_RTC__
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

// div_floor rounds the quotient down, and mod_floor is what it leaves: of the divisor's sign, as in
// Python. A division by 0 gives 0 and leaves a; the quotient of the least number and -1 wraps.
// Shifts by fewer than 0 places, or by more than there are, move all bits out.
#define SINTER_INTEGER_ARITHMETIC(T, U)                                                           \
  SINTER_DEVICE T add(T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); } \
  SINTER_DEVICE T sub(T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); } \
  SINTER_DEVICE T mul(T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); } \
  SINTER_DEVICE T neg(T a) { return sub(T(0), a); }                                               \
  SINTER_DEVICE T abs(T a) { return a < 0 ? neg(a) : a; }                                         \
  SINTER_DEVICE T maximum(T a, T b) { return a < b ? b : a; }                                     \
  SINTER_DEVICE T minimum(T a, T b) { return a < b ? a : b; }                                     \
  SINTER_DEVICE T mod_floor(T a, T b) {                                                           \
    if (b == 0) return a;                                                                         \
    const T rest = b == -1 ? T(0) : a % b;                                                        \
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;                                  \
  }                                                                                               \
  SINTER_DEVICE T div_floor(T a, T b) {                                                           \
    if (b == 0) return 0;                                                                         \
    if (b == -1) return neg(a);                                                                   \
    const T quotient = a / b;                                                                     \
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;                            \
  }                                                                                               \
  SINTER_DEVICE T bit_and(T a, T b) { return a & b; }                                             \
  SINTER_DEVICE T bit_or(T a, T b) { return a | b; }                                              \
  SINTER_DEVICE T bit_xor(T a, T b) { return a ^ b; }                                             \
  SINTER_DEVICE T shift_left(T a, T b) {                                                          \
    return static_cast<U>(b) < 8 * sizeof(T) ? static_cast<T>(static_cast<U>(a) << b) : T(0);     \
  }                                                                                               \
  SINTER_DEVICE T shift_right(T a, T b) {                                                         \
    const T places = static_cast<U>(b) < 8 * sizeof(T) ? b : T(8 * sizeof(T) - 1);                \
    return a >> places;                                                                           \
  }
SINTER_INTEGER_ARITHMETIC(int, u32)
SINTER_INTEGER_ARITHMETIC(i64, u64)
#ifndef __CUDACC_RTC__
SINTER_INTEGER_ARITHMETIC(long, unsigned long)  // int64_t of the host
#endif
#undef SINTER_INTEGER_ARITHMETIC

// The integer below, and the nearest one, ties to even.
SINTER_DEVICE float floor(float a) {
#ifdef __CUDACC_RTC__
  float result;
  asm("cvt.rmi.f32.f32 %0, %1;" : "=f"(result) : "f"(a));
  return result;
#else
  return __builtin_floorf(a);
#endif
}
SINTER_DEVICE float round(float a) {
#ifdef __CUDACC_RTC__
  float result;
  asm("cvt.rni.f32.f32 %0, %1;" : "=f"(result) : "f"(a));
  return result;
#else
  return __builtin_rintf(a);
#endif
}

// The bits of a number that is no NaN as an integer of the same order; -0 is less than +0.
SINTER_DEVICE int ordered_bits(float a) {
  const int bits = static_cast<int>(float_bits(a));
  return bits ^ (bits < 0 ? 0x7fffffff : 0);
}
SINTER_DEVICE bool is_nan(float a) { return (float_bits(a) & 0x7fffffffu) > 0x7f800000u; }

// NaN if an operand is; -0 is less than +0: so both commute, bit for bit. Integer comparisons let
// the host compiler make a loop of vector instructions without branches.
SINTER_DEVICE float maximum(float a, float b) {
#if SINTER_HAS_BF16_ARITHMETIC
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  const u32 larger = ordered_bits(a) < ordered_bits(b) ? float_bits(b) : float_bits(a);
  return bits_float(is_nan(a) | is_nan(b) ? 0x7fffffffu : larger);
#endif
}

SINTER_DEVICE float minimum(float a, float b) {
#if SINTER_HAS_BF16_ARITHMETIC
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  const u32 smaller = ordered_bits(a) < ordered_bits(b) ? float_bits(a) : float_bits(b);
  return bits_float(is_nan(a) | is_nan(b) ? 0x7fffffffu : smaller);
#endif
}

// -|x|, but at least `low`; NaN stays. One instruction where a maximum is one.
SINTER_DEVICE float neg_abs_above(float x, float low) {
#if SINTER_HAS_BF16_ARITHMETIC
  float result;
  asm("{\n\t.reg .f32 t;\n\tabs.f32 t, %1;\n\tneg.f32 t, t;\n\tmax.NaN.f32 %0, t, %2;\n\t}"
      : "=f"(result)
      : "f"(x), "f"(low));
  return result;
#else
  return maximum(-abs(x), low);
#endif
}

// x, but low or high where it lies outside; NaN stays.
SINTER_DEVICE float clamp(float x, float low, float high) {
#if SINTER_HAS_BF16_ARITHMETIC
  asm("min.NaN.f32 %0, %0, %1;\n\tmax.NaN.f32 %0, %0, %2;" : "+f"(x) : "f"(high), "f"(low));
  return x;
#else
  x = x > high ? high : x;
  return x < low ? low : x;
#endif
}

// 1 / a for a in [0.5, 2], rounded to nearest; NaN of NaN. The quotient's code for any divisor
// branches, which keeps neighbouring elements from being computed side by side; here one Newton
// step rounds the approximation correctly (tests/ir/scalar_math_device_test.cpp tries all
// arguments).
SINTER_DEVICE float reciprocal_near_one(float a) {
#ifdef __CUDACC_RTC__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a));
  return fma(y, fma(-a, y, 1.0f), y);
#else
  return 1.0f / a;
#endif
}

// 1 / sqrt(a), rounded to nearest but for very few arguments: the error of the two rounded steps is
// known from two fused products, and half of it corrects the quotient.
SINTER_DEVICE float rsqrt(float a) {
  const float y = 1.0f / sqrt(a);
  const float t = a * y;
  const float error = fma(-t, y, 1.0f) - fma(a, y, -t) * y;
  return error == error ? fma(0.5f * y, error, y) : y;  // NaN beside zeros and infinities
}

// x = n ln 2 + r, n = round(x / ln 2), |r| <= ln 2 / 2; `shifted` holds n in its low bits.
SINTER_DEVICE float reduce_exponent(float x, float& shifted) {
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23
  shifted = fma(x, 0x1.715476p+0f, shift);
  const float n = shifted - shift;
  return fma(n, 0x1.05c610p-29f, fma(n, -0x1.62e430p-1f, x));
}

// (e^r - 1) / r for |r| <= ln 2 / 2.
SINTER_DEVICE float exp_slope(float r) {
  float p = 0x1.6a452ap-10f;
  p = fma(p, r, 0x1.1239acp-7f);
  p = fma(p, r, 0x1.5558b8p-5f);
  p = fma(p, r, 0x1.555492p-3f);
  p = fma(p, r, 0x1.fffffcp-2f);
  return fma(p, r, 1.0f);
}

// exp(x) = 2^n e^r. The scaling is in two steps, of which only the second can round (a subnormal
// result) or overflow.
SINTER_DEVICE float exp(float x) {
  float shifted;
  const float r = reduce_exponent(clamp(x, -104.0f, 89.0f), shifted);  // e^-104 is 0, e^89 infinite
  // Sums of shifted numbers are one instruction; the bits above n leave at the top.
  const u32 exponent = float_bits(shifted) - 0x4b400000u;
  const u32 half = static_cast<u32>(static_cast<int>(exponent) >> 1);
  return fma(exp_slope(r), r, 1.0f) * bits_float((half << 23) + 0x3f800000u) *
         bits_float(((exponent - half) << 23) + 0x3f800000u);
}

// e^-|x| = 2^(n + 64) e^r 2^-64: without large results one power does for all, of which only the
// last product can round. 13 instructions where exp takes 19.
SINTER_DEVICE float exp_neg_abs(float x) {
  float shifted;
  const float r = reduce_exponent(neg_abs_above(x, -104.0f), shifted);
  const float power = bits_float((float_bits(shifted) << 23) + 0x5f800000u);
  return fma(exp_slope(r) * r, power, power) * 0x1p-64f;
}

// e^x - 1 = 2^n (e^r - 1) + (2^n - 1), and +-0 as it is. From 20 on the 1 changes nothing.
SINTER_DEVICE float expm1(float x) {
  float shifted;
  const float r = reduce_exponent(clamp(x, -18.0f, 20.0f), shifted);  // e^-18 - 1 is -1
  const float power = bits_float((float_bits(shifted) << 23) + 0x3f800000u);
  const float y = fma(power, exp_slope(r) * r, power - 1.0f);
  return x >= 20.0f ? exp(x) : x == 0.0f ? x : y;
}

// 1 / (1 + e^-x), and e^x / (1 + e^x) for negative x: the divisor is in [1, 2].
SINTER_DEVICE float sigmoid(float x) {
  const float e = exp_neg_abs(x);
  const float y = reciprocal_near_one(1.0f + e);
  return x < 0.0f ? e * y : y;
}

// log(1 + f) for 1 + f in [2/3, 4/3) is f + f^2 log_slope(f).
SINTER_DEVICE float log_slope(float f) {
  float p = -0x1.07c39ap-3f;
  p = fma(p, f, 0x1.1e752ap-3f);
  p = fma(p, f, -0x1.f3313cp-4f);
  p = fma(p, f, 0x1.1ed3eap-3f);
  p = fma(p, f, -0x1.559c90p-3f);
  p = fma(p, f, 0x1.99d060p-3f);
  p = fma(p, f, -0x1.fffef8p-3f);
  p = fma(p, f, 0x1.555506p-2f);
  return fma(p, f, -0.5f);
}

// log(x) = n ln 2 + log(1 + f), 1 + f in [2/3, 4/3).
SINTER_DEVICE float log(float x) {
  u32 bits = float_bits(x);
  if (bits - 1u >= 0x7f800000u - 1u) {  // zero, negative, infinite or NaN
    if (x == 0.0f) return -infinity();
    return bits == 0x7f800000u ? x : nan();
  }
  float n = 0.0f;
  if (bits < 0x00800000u) {
    bits = float_bits(x * 0x1p23f);
    n = -23.0f;
  }
  const u32 exponent = (bits - 0x3f2aaaabu) & 0xff800000u;  // bits of 2/3
  const float f = bits_float(bits - exponent) - 1.0f;
  n += static_cast<float>(static_cast<int>(exponent) >> 23);
  return fma(n, 0x1.62e430p-1f, fma(log_slope(f), f * f, f));
}

// log(1 + x): of 1 + x as log has it, with what the sum 1 + x lost by its rounding added to f.
SINTER_DEVICE float log1p(float x) {
  if (x >= -0x1.555554p-2f && x < 0x1.555554p-2f) {
    return x == 0.0f ? x : fma(log_slope(x), x * x, x);  // n is 0
  }
  const float sum = 1.0f + x;
  if (!(sum > 0.0f && sum < infinity())) return log(sum);
  const u32 exponent = (float_bits(sum) - 0x3f2aaaabu) & 0xff800000u;
  const float lost = x > 1.0f ? 1.0f - (sum - x) : x - (sum - 1.0f);
  const float f = bits_float(float_bits(sum) - exponent) - 1.0f;
  const float n = static_cast<float>(static_cast<int>(exponent) >> 23);
  return fma(n, 0x1.62e430p-1f, fma(log_slope(f), f * f, f + lost / sum));
}

// a^b = 2^n e^r of b log |a|, in float64: its logarithm is within 2^-39 of its size, so that a
// product of up to 128 is known far better than a float. Exact results are exact, and the special
// cases are as in C's pow.
SINTER_DEVICE float pow(float a, float b) {
  if (a == 1.0f || b == 0.0f) return 1.0f;
  const float size = abs(a), whole = abs(b);
  const bool is_integer = floor(whole) == whole;  // so are infinity and all from 2^23 on
  const bool is_odd = is_integer && whole < 0x1p24f && (static_cast<int>(whole) & 1) != 0;
  const bool is_negative = float_bits(a) >> 31 != 0;
  // log |a| = n ln 2 + 2 atanh(s), 1 + f = m in [2/3, 4/3), s = f / (2 + f).
  const double wide = size;
  const u64 bits = double_bits(wide);
  const u64 exponent = (bits - 0x3fe5555555555555ull) & 0xfff0000000000000ull;
  const double f = bits_double(bits - exponent) - 1.0;
  const double s = f / (f + 2.0), t = s * s;
  double p = 1.0 / 15.0;
  p = fma(p, t, 1.0 / 13.0);
  p = fma(p, t, 1.0 / 11.0);
  p = fma(p, t, 1.0 / 9.0);
  p = fma(p, t, 1.0 / 7.0);
  p = fma(p, t, 1.0 / 5.0);
  p = fma(p, t, 1.0 / 3.0);
  const double n = static_cast<double>(static_cast<int>(static_cast<i64>(exponent) >> 52));
  double z = fma(n, 0x1.62e42fefa39efp-1, 2.0 * fma(p * t, s, s));
  // The product; beyond these bounds the power is 0 or infinite.
  const bool grows = (size > 1.0f) == (b > 0.0f);
  z *= static_cast<double>(b);
  z = z > 100.0 ? 100.0 : z < -110.0 ? -110.0 : z;
  if (size == 0.0f || size == infinity() || whole == infinity()) z = grows ? 100.0 : -110.0;
  // e^z by its series.
  const double shift = 0x1.8p52;
  const double shifted = fma(z, 0x1.71547652b82fep+0, shift);
  const double r = fma(shifted - shift, -0x1.62e42fefa39efp-1, z);
  double e = 1.0 / 3628800.0;
  e = fma(e, r, 1.0 / 362880.0);
  e = fma(e, r, 1.0 / 40320.0);
  e = fma(e, r, 1.0 / 5040.0);
  e = fma(e, r, 1.0 / 720.0);
  e = fma(e, r, 1.0 / 120.0);
  e = fma(e, r, 1.0 / 24.0);
  e = fma(e, r, 1.0 / 6.0);
  e = fma(e, r, 0.5);
  e = fma(e, r, 1.0);
  e = fma(e, r, 1.0);
  float y =
      static_cast<float>(e * bits_double((double_bits(shifted) << 52) + 0x3ff0000000000000ull));
  if (size == 1.0f) y = 1.0f;
  if (is_negative && !is_integer && size != 0.0f && size != infinity()) y = nan();
  if (a != a || b != b) y = nan();
  return is_negative && is_odd ? neg(y) : y;
}

// 2 x = n ln 2 + r as reduce_exponent(2 x) has it, and e^r - 1 as exp_slope(r) r, bit for bit and
// without the sum: it computes with r / 2, so that its constants are theirs times powers of two.
SINTER_DEVICE float expm1_of_twice(float x, float& shifted) {
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23
  shifted = fma(x, 0x1.715476p+1f, shift);
  const float n = shifted - shift;
  const float half = fma(n, 0x1.05c610p-30f, fma(n, -0x1.62e430p-2f, x));
  float p = 0x1.6a452ap-4f;
  p = fma(p, half, 0x1.1239acp-2f);
  p = fma(p, half, 0x1.5558b8p-1f);
  p = fma(p, half, 0x1.555492p+0f);
  p = fma(p, half, 0x1.fffffcp+0f);
  return fma(p, half, 2.0f) * half;
}

// tanh(x) = 1 - 2 t / (1 + t), t = e^-2|x|, and an odd polynomial where that cancels. Both are
// computed: side by side they take less than a branch.
SINTER_DEVICE float tanh(float x) {
  const float s = x * x;
  float p = -0x1.950312p-8f;
  p = fma(p, s, 0x1.582a5cp-6f);
  p = fma(p, s, -0x1.b907cep-5f);
  p = fma(p, s, 0x1.110c64p-3f);
  p = fma(p, s, -0x1.555548p-2f);
  const float near = fma(p * s, x, x);
  const float z = neg_abs_above(x, -20.0f);  // tanh(20) rounds to 1
  float shifted;
  const float slope_r = expm1_of_twice(z, shifted);
  const float power = bits_float((float_bits(shifted) << 23) + 0xc0000000u);  // -2^(n + 1)
  const float minus_2t = fma(slope_r, power, power);
  const float far = fma(minus_2t, reciprocal_near_one(fma(minus_2t, -0.5f, 1.0f)), 1.0f);
  return copy_sign(z > -0.55f ? near : far, x);
}

// An odd polynomial of |x|, or of 1 / |x| above 1: atan(x) = pi/2 - atan(1 / x). The product of the
// two constants is pi/2 to 48 bits.
SINTER_DEVICE float atan(float x) {
  const float a = abs(x);
  const float y = a > 1.0f ? 1.0f / a : a;
  const float s = y * y;
  float p = 0x1.6d2026p-9f;
  p = fma(p, s, -0x1.03f2ecp-6f);
  p = fma(p, s, 0x1.5beec2p-5f);
  p = fma(p, s, -0x1.33194ep-4f);
  p = fma(p, s, 0x1.b403a8p-4f);
  p = fma(p, s, -0x1.22f5c2p-3f);
  p = fma(p, s, 0x1.997748p-3f);
  p = fma(p, s, -0x1.5554d8p-2f);
  const float near = fma(p * s, y, y);
  return copy_sign(a > 1.0f ? fma(0x1.ddcb02p-1f, 0x1.aee9d6p+0f, -near) : near, x);
}

// erf(x) = 1 - q(|x|)^4, q a fit of the fourth root of erfc, and an odd polynomial for |x| < 1.
SINTER_DEVICE float erf(float x) {
  const float a = minimum(abs(x), 4.0f);  // erf(4) rounds to 1
  const float s = x * x;
  float p = 0x1.478c5ap-14f;
  p = fma(p, s, -0x1.a357c4p-11f);
  p = fma(p, s, 0x1.53f2a2p-8f);
  p = fma(p, s, -0x1.b7f720p-6f);
  p = fma(p, s, 0x1.ce2ce6p-4f);
  p = fma(p, s, -0x1.81273ep-2f);
  p = fma(p, s, 0x1.06eba8p-3f);
  const float near = fma(p, x, x);
  float q = -0x1.715406p-16f;
  q = fma(q, a, 0x1.6d3db2p-13f);
  q = fma(q, a, 0x1.a35c06p-11f);
  q = fma(q, a, -0x1.a48d0cp-7f);
  q = fma(q, a, 0x1.685fdp-5f);
  q = fma(q, a, -0x1.224d2ap-6f);
  q = fma(q, a, -0x1.7d8d98p-4f);
  q = fma(q, a, -0x1.2cb55cp-2f);
  q = fma(q, a, 0x1.008fb0p+0f);
  const float square = q * q;
  const float far = copy_sign(fma(-square, square, 1.0f), x);
  return a < 1.0f ? near : far;
}

// |x| = quarter turns * pi/2 + r, |r| <= pi/4, after Payne and Hanek: the mantissa times those 96
// bits of 2/pi that matter for this exponent, the multiples of four quarter turns left out. The
// error of the fraction is below 2^-62 quarter turns; no float is nearer than 2^-30 to a multiple.
SINTER_DEVICE float reduce_angle(float x, u32& quarter_turns) {
  const u32 two_over_pi[8] = {0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                              0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
  const u32 bits = float_bits(x) & 0x7fffffffu;
  quarter_turns = 0;
  if (bits <= 0x3f490fdbu) return bits_float(bits);  // pi/4
  if (bits >= 0x7f800000u) return nan();
  const u64 mantissa = (bits & 0x007fffffu) | 0x00800000u;
  const u32 position = (bits >> 23) - 120u;
  const u32 word = position >> 5, shift = 32u - (position & 31u);
  const u32 high = static_cast<u32>(
      (static_cast<u64>(two_over_pi[word]) << 32 | two_over_pi[word + 1]) >> shift);
  const u32 middle = static_cast<u32>(
      (static_cast<u64>(two_over_pi[word + 1]) << 32 | two_over_pi[word + 2]) >> shift);
  const u32 low = static_cast<u32>(
      (static_cast<u64>(two_over_pi[word + 2]) << 32 | two_over_pi[word + 3]) >> shift);
  const u64 turns = (high * mantissa << 32) + middle * mantissa + (low * mantissa >> 32);
  quarter_turns = static_cast<u32>((turns + (1ull << 61)) >> 62);
  const long long fraction =
      static_cast<long long>(turns - (static_cast<u64>(quarter_turns) << 62));
  return static_cast<float>(static_cast<double>(fraction) * 0x1.921fb54442d18p-62);  // pi/2 2^-62
}

SINTER_DEVICE float sin_near_zero(float r) {
  const float s = r * r;
  float p = -0x1.995402p-13f;
  p = fma(p, s, 0x1.110778p-7f);
  p = fma(p, s, -0x1.555546p-3f);
  return fma(p * s, r, r);
}

SINTER_DEVICE float cos_near_zero(float r) {
  const float s = r * r;
  float p = 0x1.99e0f0p-16f;
  p = fma(p, s, -0x1.6c0c1ap-10f);
  p = fma(p, s, 0x1.55554ap-5f);
  p = fma(p, s, -0.5f);
  return fma(p, s, 1.0f);
}

SINTER_DEVICE float sin(float x) {
  u32 turns;
  const float r = reduce_angle(x, turns);
  const float y = turns & 1u ? cos_near_zero(r) : sin_near_zero(r);
  return bits_float(float_bits(y) ^ (turns & 2u) << 30 ^ (float_bits(x) & 0x80000000u));
}

SINTER_DEVICE float cos(float x) {
  u32 turns;
  const float r = reduce_angle(x, turns);
  const float y = turns & 1u ? sin_near_zero(r) : cos_near_zero(r);
  return bits_float(float_bits(y) ^ ((turns + 1u) & 2u) << 30);
}

#ifndef __CUDACC_RTC__
// Constants of the IR are doubles; they too are rounded once. The nearest float would round twice;
// the float next to the value towards zero, its last bit set if it is inexact, does not.
inline float to_float_sticky(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || x != x) return nearest;
  u32 bits = float_bits(nearest);
  if ((back < 0 ? -back : back) > (x < 0 ? -x : x)) --bits;
  return bits_float(bits | 1u);
}
inline u16 double_to_f16(double x) { return float_to_f16(to_float_sticky(x)); }
inline u16 double_to_bf16(double x) { return float_to_bf16(to_float_sticky(x)); }
#endif

}  // namespace math
}  // namespace sinter
