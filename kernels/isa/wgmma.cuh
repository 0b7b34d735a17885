// wgmma.m64nNk16: products of a warpgroup, four warps, on tensor cores, with operands of 16-bit
// elements in shared memory and float32 sums.
//
// Warp w of the four has the rows 16 w .. 16 w + 15 of a product of 64 rows; within them a lane,
// lane = 4 g + q, has of each 8 columns c: sums[4c], sums[4c + 1]: row g, columns 8c + 2q and 8c +
// 2q + 1; sums[4c + 2], sums[4c + 3]: row g + 8. An operand A in registers has the fragments of
// mma.cuh.
//
// A matrix in shared memory is cut into panels, 16, 32 or 64 elements (`row_bytes` 32, 64 or 128)
// of its rows, one panel after the other, and the 16-byte chunks of a panel are swizzled
// (kernels/tile/layout.h): bits 4 .. of an address are combined with its bits 7 .. by xor. A panel
// begins at a multiple of 8 rows of 128 bytes.
//
// Products are asynchronous: wgmma_fence(sums) before the first, wgmma_commit_group() after the
// last of a group, and wgmma_wait_group(sums) before sums are read or operands are overwritten.
//
// The order in which the hardware adds the 16 products of a step is its own.
#pragma once

#include "kernels/common/vector.cuh"
#include "kernels/isa/address.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

/// The matrix descriptor of an operand in shared memory.
///   K-major (elements along the sum's axis are contiguous): 8 rows are `step` bytes apart
///   MN-major: 8 elements of the sum are `step` bytes apart, and panels `panel` bytes
struct MatrixDescriptor {
  unsigned low, high;  // halves of the 64 bits; the address is the lowest field

  /// The descriptor of what begins `bytes` bytes later.
  SINTER_DEVICE MatrixDescriptor advanced(int bytes) const {
    return {low + (static_cast<unsigned>(bytes) >> 4), high};
  }
  SINTER_DEVICE math::u64 bits() const {
    math::u64 result;
    asm("mov.b64 %0, {%1, %2};" : "=l"(result) : "r"(low), "r"(high));
    return result;
  }
};
template <int row_bytes>
SINTER_DEVICE MatrixDescriptor matrix_descriptor(const void* p, int step, int panel) {
  constexpr unsigned swizzle = row_bytes == 128 ? 1 : row_bytes == 64 ? 2 : 3;
  return {(cvta_to_shared(p) >> 4 & 0x3fff) | static_cast<unsigned>(panel >> 4) << 16,
          static_cast<unsigned>(step >> 4) | swizzle << 30};
}
/// fence.proxy.async: products that come after a barrier see what the thread wrote to shared
/// memory.
SINTER_DEVICE void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/// No instruction: the compiler moves no use of `sums` across this place.
template <int count>
SINTER_DEVICE void warpgroup_fence_operand(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
template <int count>
SINTER_DEVICE void wgmma_fence(float (&sums)[count]) {
  warpgroup_fence_operand(sums);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
SINTER_DEVICE void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most the latest `groups` groups are incomplete.
template <int groups, int count>
SINTER_DEVICE void wgmma_wait_group(float (&sums)[count]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
  warpgroup_fence_operand(sums);
}
/// One step, 16 elements of the sum, of a product with `columns` columns.
template <int columns, typename T>
struct Wgmma;

// The registers that an instruction writes: 8 for each 16 columns, %0 .. %7 and so on.
#define SINTER_SUMS_16 "%0, %1, %2, %3, %4, %5, %6, %7"
#define SINTER_SUMS_32 SINTER_SUMS_16 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SINTER_SUMS_48 SINTER_SUMS_32 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define SINTER_SUMS_64 SINTER_SUMS_48 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define SINTER_SUMS_80 SINTER_SUMS_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define SINTER_SUMS_96 SINTER_SUMS_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define SINTER_SUMS_112 SINTER_SUMS_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define SINTER_SUMS_128 SINTER_SUMS_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define SINTER_SUMS_144 SINTER_SUMS_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define SINTER_SUMS_160 SINTER_SUMS_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define SINTER_SUMS_176 SINTER_SUMS_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define SINTER_SUMS_192 SINTER_SUMS_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define SINTER_SUMS_208 SINTER_SUMS_192 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define SINTER_SUMS_224 SINTER_SUMS_208 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define SINTER_SUMS_240 SINTER_SUMS_224 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define SINTER_SUMS_256 SINTER_SUMS_240 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define SINTER_OUT_8(s, i)                                                                    \
  "+f"(s[i]), "+f"(s[i + 1]), "+f"(s[i + 2]), "+f"(s[i + 3]), "+f"(s[i + 4]), "+f"(s[i + 5]), \
      "+f"(s[i + 6]), "+f"(s[i + 7])
#define SINTER_OUT_16(s) SINTER_OUT_8(s, 0)
#define SINTER_OUT_32(s) SINTER_OUT_16(s), SINTER_OUT_8(s, 8)
#define SINTER_OUT_48(s) SINTER_OUT_32(s), SINTER_OUT_8(s, 16)
#define SINTER_OUT_64(s) SINTER_OUT_48(s), SINTER_OUT_8(s, 24)
#define SINTER_OUT_80(s) SINTER_OUT_64(s), SINTER_OUT_8(s, 32)
#define SINTER_OUT_96(s) SINTER_OUT_80(s), SINTER_OUT_8(s, 40)
#define SINTER_OUT_112(s) SINTER_OUT_96(s), SINTER_OUT_8(s, 48)
#define SINTER_OUT_128(s) SINTER_OUT_112(s), SINTER_OUT_8(s, 56)
#define SINTER_OUT_144(s) SINTER_OUT_128(s), SINTER_OUT_8(s, 64)
#define SINTER_OUT_160(s) SINTER_OUT_144(s), SINTER_OUT_8(s, 72)
#define SINTER_OUT_176(s) SINTER_OUT_160(s), SINTER_OUT_8(s, 80)
#define SINTER_OUT_192(s) SINTER_OUT_176(s), SINTER_OUT_8(s, 88)
#define SINTER_OUT_208(s) SINTER_OUT_192(s), SINTER_OUT_8(s, 96)
#define SINTER_OUT_224(s) SINTER_OUT_208(s), SINTER_OUT_8(s, 104)
#define SINTER_OUT_240(s) SINTER_OUT_224(s), SINTER_OUT_8(s, 112)
#define SINTER_OUT_256(s) SINTER_OUT_240(s), SINTER_OUT_8(s, 120)

// type: of the operands; a .. f: the numbers of the operands after the sums.
#define SINTER_WGMMA(columns, element, type, a, b, c, d, e, f)                                     \
  template <>                                                                                      \
  struct Wgmma<columns, element> {                                                                 \
    /* sums = A B, or sums += A B if `adds`; A in shared memory, each K-major or MN-major. */      \
    template <bool first_mn_major = false, bool second_mn_major = false>                           \
    static SINTER_DEVICE void mma_async_ss(float (&sums)[columns / 2], MatrixDescriptor first,     \
                                           MatrixDescriptor second, bool adds) {                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #c                                         \
                   ", 0;\n"                                                                        \
                   "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type           \
                   " {" SINTER_SUMS_##columns "}, %" #a ", %" #b ", p, 1, 1, %" #d ", %" #e ";\n}" \
                   : SINTER_OUT_##columns(sums)                                                    \
                   : "l"(first.bits()), "l"(second.bits()), "r"(static_cast<int>(adds)),           \
                     "n"(static_cast<int>(first_mn_major)),                                        \
                     "n"(static_cast<int>(second_mn_major)));                                      \
    }                                                                                              \
    /* K-major, with A in registers. */                                                            \
    static SINTER_DEVICE void mma_async_rs_k_major(float (&sums)[columns / 2],                     \
                                                   const unsigned* first, MatrixDescriptor second, \
                                                   bool adds) {                                    \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #f                                         \
                   ", 0;\n"                                                                        \
                   "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type           \
                   " {" SINTER_SUMS_##columns "}, {%" #a ", %" #b ", %" #c ", %" #d "}, %" #e      \
                                              ", p, 1, 1, 0;\n}"                                   \
                   : SINTER_OUT_##columns(sums)                                                    \
                   : "r"(first[0]), "r"(first[1]), "r"(first[2]), "r"(first[3]),                   \
                     "l"(second.bits()), "r"(static_cast<int>(adds)));                             \
    }                                                                                              \
    /* sums += A B; A in registers, B MN-major. */                                                 \
    static SINTER_DEVICE void mma_async_rs(float (&sums)[columns / 2], const unsigned* first,      \
                                           MatrixDescriptor second) {                              \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type           \
                   " {" SINTER_SUMS_##columns "}, {%" #a ", %" #b ", %" #c ", %" #d "}, %" #e      \
                                              ", 1, 1, 1, 1;"                                      \
                   : SINTER_OUT_##columns(sums)                                                    \
                   : "r"(first[0]), "r"(first[1]), "r"(first[2]), "r"(first[3]),                   \
                     "l"(second.bits()));                                                          \
    }                                                                                              \
  };
#define SINTER_WGMMAS(columns, a, b, c, d, e, f)      \
  SINTER_WGMMA(columns, f16, "f16", a, b, c, d, e, f) \
  SINTER_WGMMA(columns, bf16, "bf16", a, b, c, d, e, f)
SINTER_WGMMAS(16, 8, 9, 10, 11, 12, 13)
SINTER_WGMMAS(32, 16, 17, 18, 19, 20, 21)
SINTER_WGMMAS(48, 24, 25, 26, 27, 28, 29)
SINTER_WGMMAS(64, 32, 33, 34, 35, 36, 37)
SINTER_WGMMAS(80, 40, 41, 42, 43, 44, 45)
SINTER_WGMMAS(96, 48, 49, 50, 51, 52, 53)
SINTER_WGMMAS(112, 56, 57, 58, 59, 60, 61)
SINTER_WGMMAS(128, 64, 65, 66, 67, 68, 69)
SINTER_WGMMAS(144, 72, 73, 74, 75, 76, 77)
SINTER_WGMMAS(160, 80, 81, 82, 83, 84, 85)
SINTER_WGMMAS(176, 88, 89, 90, 91, 92, 93)
SINTER_WGMMAS(192, 96, 97, 98, 99, 100, 101)
SINTER_WGMMAS(208, 104, 105, 106, 107, 108, 109)
SINTER_WGMMAS(224, 112, 113, 114, 115, 116, 117)
SINTER_WGMMAS(240, 120, 121, 122, 123, 124, 125)
SINTER_WGMMAS(256, 128, 129, 130, 131, 132, 133)
#undef SINTER_WGMMAS
#undef SINTER_WGMMA

}  // namespace sinter
#endif
