// Products of a warpgroup, four warps, on tensor cores (wgmma.m64nNk16), with operands in shared
// memory.
//
// Warp w of the four has the rows 16 w .. 16 w + 15 of a product of 64 rows; within them a lane,
// lane = 4 g + q, has of each 8 columns c: sums[4c], sums[4c + 1]: row g, columns 8c + 2q and 8c +
// 2q + 1; sums[4c + 2], sums[4c + 3]: row g + 8. An operand A in registers has the fragments of
// mma.cuh.
//
// A matrix in shared memory is cut into panels, 16, 32 or 64 elements (`row_bytes` 32, 64 or 128)
// of its rows, one panel after the other, and 16-byte chunks of a panel are swizzled
// (kernels/attention/layout.h): bits 4 .. of an address are combined with its bits 7 .. by xor. A
// panel begins at a multiple of 8 rows of 128 bytes.
//
// Products are asynchronous: begin_products(sums) before the first, end_products() after the last
// of a group, and wait_for_products(sums) before sums are read or operands are overwritten.
//
// Which order the hardware adds in is its own; the CPU of the tests adds in the order of mma.cuh.
// In every other block it computes products when they are issued; in the others when they are
// waited for, from what their operands, registers too, are by then: so a missing wait is seen, and
// so is an operand that is overwritten too early or comes too late.
#pragma once

#include "kernels/common/mma.cuh"
#include "kernels/common/pending_groups.cuh"
#include "kernels/common/shared_address.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// A matrix of 16-bit elements in shared memory, as an instruction takes it.
//   rows along the sum's axis contiguous ("K-major"): 8 rows are `step` bytes apart
//   columns contiguous ("MN-major"): 8 elements of the sum are `step` bytes apart, panels `panel`
// after(bytes) begins so many bytes later.
#ifdef __CUDACC_RTC__
struct MatrixTile {
  unsigned low, high;  // of 64 bits; the address is the lowest field

  SINTER_DEVICE MatrixTile after(int bytes) const {
    return {low + (static_cast<unsigned>(bytes) >> 4), high};
  }
  SINTER_DEVICE math::u64 bits() const {
    math::u64 result;
    asm("mov.b64 %0, {%1, %2};" : "=l"(result) : "r"(low), "r"(high));
    return result;
  }
};
template <int row_bytes>
SINTER_DEVICE MatrixTile matrix_tile(const void* p, int step, int panel) {
  constexpr unsigned swizzle = row_bytes == 128 ? 1 : row_bytes == 64 ? 2 : 3;
  return {(shared_address(p) >> 4 & 0x3fff) | static_cast<unsigned>(panel >> 4) << 16,
          static_cast<unsigned>(step >> 4) | swizzle << 30};
}
// Writes of shared memory by the thread are seen by products that come after; a barrier follows.
SINTER_DEVICE void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// The compiler moves no use of `sums` across this place.
template <int count>
SINTER_DEVICE void keep_in_place(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
template <int count>
SINTER_DEVICE void begin_products(float (&sums)[count]) {
  keep_in_place(sums);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
SINTER_DEVICE void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int groups, int count>
SINTER_DEVICE void wait_for_products(float (&sums)[count]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
  keep_in_place(sums);
}
// setmaxnreg: from here on each thread of this warpgroup has `registers` registers.
template <int registers>
SINTER_DEVICE void give_registers_back() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
SINTER_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// sums (+)= A B, B with `columns` columns, 16 elements of the sum.
template <int columns, typename T>
struct WarpgroupProduct;

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

// `type`: of the operands; a .. e: the numbers of the operands after the sums.
#define SINTER_WARPGROUP_PRODUCT(columns, element, type, a, b, c, d, e)                       \
  template <>                                                                                 \
  struct WarpgroupProduct<columns, element> {                                                 \
    /* A in shared memory and B K-major; `adds`: to what sums has. */                         \
    static SINTER_DEVICE void multiply(float (&sums)[columns / 2], MatrixTile first,          \
                                       MatrixTile second, bool adds) {                        \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #c                                    \
                   ", 0;\n"                                                                   \
                   "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type      \
                   " {" SINTER_SUMS_##columns "}, %" #a ", %" #b ", p, 1, 1, 0, 0;\n}"        \
                   : SINTER_OUT_##columns(sums)                                               \
                   : "l"(first.bits()), "l"(second.bits()), "r"(static_cast<int>(adds)));     \
    }                                                                                         \
    /* A in registers and B MN-major. */                                                      \
    static SINTER_DEVICE void add(float (&sums)[columns / 2], const unsigned* first,          \
                                  MatrixTile second) {                                        \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type      \
                   " {" SINTER_SUMS_##columns "}, {%" #a ", %" #b ", %" #c ", %" #d "}, %" #e \
                                              ", 1, 1, 1, 1;"                                 \
                   : SINTER_OUT_##columns(sums)                                               \
                   : "r"(first[0]), "r"(first[1]), "r"(first[2]), "r"(first[3]),              \
                     "l"(second.bits()));                                                     \
    }                                                                                         \
  };
#define SINTER_WARPGROUP_PRODUCTS(columns, a, b, c, d, e)      \
  SINTER_WARPGROUP_PRODUCT(columns, f16, "f16", a, b, c, d, e) \
  SINTER_WARPGROUP_PRODUCT(columns, bf16, "bf16", a, b, c, d, e)
SINTER_WARPGROUP_PRODUCTS(16, 8, 9, 10, 11, 12)
SINTER_WARPGROUP_PRODUCTS(32, 16, 17, 18, 19, 20)
SINTER_WARPGROUP_PRODUCTS(48, 24, 25, 26, 27, 28)
SINTER_WARPGROUP_PRODUCTS(64, 32, 33, 34, 35, 36)
SINTER_WARPGROUP_PRODUCTS(80, 40, 41, 42, 43, 44)
SINTER_WARPGROUP_PRODUCTS(96, 48, 49, 50, 51, 52)
SINTER_WARPGROUP_PRODUCTS(112, 56, 57, 58, 59, 60)
SINTER_WARPGROUP_PRODUCTS(128, 64, 65, 66, 67, 68)
SINTER_WARPGROUP_PRODUCTS(144, 72, 73, 74, 75, 76)
SINTER_WARPGROUP_PRODUCTS(160, 80, 81, 82, 83, 84)
SINTER_WARPGROUP_PRODUCTS(176, 88, 89, 90, 91, 92)
SINTER_WARPGROUP_PRODUCTS(192, 96, 97, 98, 99, 100)
SINTER_WARPGROUP_PRODUCTS(208, 104, 105, 106, 107, 108)
SINTER_WARPGROUP_PRODUCTS(224, 112, 113, 114, 115, 116)
SINTER_WARPGROUP_PRODUCTS(240, 120, 121, 122, 123, 124)
SINTER_WARPGROUP_PRODUCTS(256, 128, 129, 130, 131, 132)
#undef SINTER_WARPGROUP_PRODUCTS
#undef SINTER_WARPGROUP_PRODUCT

#else
struct MatrixTile {
  const char* p;
  int step, panel, row_bytes;

  MatrixTile after(int bytes) const { return {p + bytes, step, panel, row_bytes}; }

  // The 16-bit element at these bytes after p, which are within a panel.
  unsigned short at(const char* start, int bytes) const {
    const math::u64 address = reinterpret_cast<math::u64>(start) + static_cast<math::u64>(bytes);
    const math::u64 bits = static_cast<math::u64>(row_bytes / 16 - 1);
    return *reinterpret_cast<const unsigned short*>(address ^ (address >> 3 & bits << 4));
  }
  unsigned short k_major(int row, int k) const {
    return at(p, row / 8 * step + row % 8 * row_bytes + 2 * k);
  }
  unsigned short mn_major(int column, int k) const {
    const int of_panel = row_bytes / 2;
    return at(p + column / of_panel * panel,
              k / 8 * step + k % 8 * row_bytes + 2 * (column % of_panel));
  }
};
template <int row_bytes>
SINTER_DEVICE MatrixTile matrix_tile(const void* p, int step, int panel) {
  return {static_cast<const char*>(p), step, panel, row_bytes};
}
SINTER_DEVICE void show_to_products() {}

struct PendingProduct {
  void (*multiply)(float* sums, const MatrixTile& first, const unsigned* words,
                   const MatrixTile& second, bool adds);
  float* sums;
  MatrixTile first;
  const unsigned* words;  // of an operand in registers
  MatrixTile second;
  bool adds;

  void compute() const { multiply(sums, first, words, second, adds); }
};
using PendingProducts = PendingGroups<PendingProduct, 64>;

// In every other block at once.
SINTER_DEVICE void add_product(const PendingProduct& product) {
  PendingProducts& pending = PendingProducts::of_thread();
  if (pending.block() % 2 == 0)
    product.compute();
  else
    pending.add(product);
}

template <int count>
SINTER_DEVICE void begin_products(float (&)[count]) {
  PendingProducts::of_thread();
}
SINTER_DEVICE void end_products() { PendingProducts::of_thread().end_group(); }
template <int groups, int count>
SINTER_DEVICE void wait_for_products(float (&)[count]) {
  __syncwarp();
  PendingProducts::of_thread().wait(groups, [](const PendingProduct& p) { p.compute(); });
}
template <int registers>
SINTER_DEVICE void give_registers_back() {}
template <int registers>
SINTER_DEVICE void take_registers() {}

template <int columns, typename T>
struct WarpgroupProduct {
  static float element(unsigned short bits) {
    return low_half(static_cast<const T*>(nullptr), bits);
  }

  // Sums of the lane: f(sum, row of the 64, column).
  template <typename Each>
  static void each(float* sums, Each f) {
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    for (int i = 0; i < columns / 2; ++i)
      f(sums[i], 16 * warp + lane / 4 + i % 4 / 2 * 8, i / 4 * 8 + 2 * (lane % 4) + i % 2);
  }
  static void multiply(float (&sums)[columns / 2], MatrixTile first, MatrixTile second, bool adds) {
    add_product({of_tiles, sums, first, nullptr, second, adds});
  }
  static void add(float (&sums)[columns / 2], const unsigned* first, MatrixTile second) {
    add_product({of_words, sums, second, first, second, true});
  }

 private:
  static void of_tiles(float* sums, const MatrixTile& first, const unsigned*,
                       const MatrixTile& second, bool adds) {
    each(sums, [&](float& sum, int row, int column) {
      sum = multiply_step(
          adds ? sum : 0.0f, [&](int k) { return element(first.k_major(row, k)); },
          [&](int k) { return element(second.k_major(column, k)); });
    });
  }
  static void of_words(float* sums, const MatrixTile&, const unsigned* first,
                       const MatrixTile& second, bool) {
    WarpWords& warp = words_of_warp();
    const int lane = threadIdx.x % 32;
    for (int i = 0; i < 4; ++i) warp.words[lane][i] = first[i];
    __syncwarp();
    each(sums, [&](float& sum, int row, int column) {
      sum = multiply_step(
          sum,
          [&](int k) {
            const unsigned word = warp.words[4 * (row % 8) + k % 8 / 2][row % 16 / 8 + k / 8 * 2];
            return element(static_cast<unsigned short>(k % 2 == 0 ? word : word >> 16));
          },
          [&](int k) { return element(second.mn_major(column, k)); });
    });
    __syncwarp();
  }
};
#endif

}  // namespace sinter
#endif
